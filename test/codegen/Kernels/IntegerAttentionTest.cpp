#include "AttentionProblem.h"

namespace mlir::llm::test {
namespace {

AttentionSpec integers(int64_t heads, int64_t kvHeads, int64_t headSize,
                       int64_t capacity) {
  AttentionSpec spec = shape(heads, kvHeads, headSize, capacity, "i8");
  spec.integers = true;
  return spec;
}

/// Lavapipe, by integer dot products: it has them, but no instruction for them,
/// so that its profile does without.
const TargetProfile &withDots() {
  static const TargetProfile made = [] {
    TargetProfile target = profile("lavapipe");
    target.features |= 1u << unsigned(Feature::IntegerDotProduct);
    target.vulkan = {1, 3};
    target.spirv = {1, 6};
    target.name += " with dots";
    return target;
  }();
  return made;
}

/// Those that have kernels of their own, as far as this device runs them.
SmallVector<const TargetProfile *> targets() {
  SmallVector<const TargetProfile *> list{&profile("lavapipe"), &profile("generic")};
  if (device()->dotProducts())
    list.push_back(&withDots());
  return list;
}

TEST(IntegerAttention, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(23);
  for (int i = 0; i < 3; ++i)
    for (const TargetProfile *target : targets()) {
      const int64_t groups = random.among<int64_t>({1, 2, 3}),
                    ratio = random.among<int64_t>({1, 2, 3, 4, 10});
      // On lavapipe 16 numbers share words, and 24 have no schedule of their own.
      AttentionSpec spec = integers(groups * ratio, groups,
                                    random.among<int64_t>({16, 24, 32, 64, 128}), 160);
      spec.split = random.among<int64_t>({64, 128});
      if (i == 1)
        spec.window = 1 + random.below(90), spec.sinks = random.below(9);
      if (i == 2)
        spec.softcap = 5, spec.bias = true;
      for (uint32_t width : {1, 7}) {
        spec.tokens = spec.tokensFor(width, *target);
        uint32_t base = random.below(160 - width + 1);
        check({i % 2 ? apart(spec, width) : spec, base, width}, *target, 50 + i);
      }
    }
}

// Alone with its splits apart, or among others with its splits in a row, by dot
// products or in floats.
TEST(IntegerAttention, ATokensBitsDependOnNothingElse) {
  SKIP_WITHOUT_DEVICE();
  AttentionSpec spec = integers(9, 3, 64, 192);
  spec.split = 64;
  Random random(5);
  const size_t row = 9 * 64;
  const std::vector<float> keys = random.numbers(192 * 3 * 64),
                           values = random.numbers(192 * 3 * 64),
                           q = random.numbers(6 * row);
  constexpr uint32_t kBase = 59;
  std::vector<float> first;
  for (const TargetProfile *target : targets()) {
    AttentionSpec together = spec;
    together.tokens = spec.tokensFor(6, *target);
    const std::vector<float> all = attend({together, kBase, 6}, *target, q, keys, values);
    ASSERT_EQ(all.size(), q.size());
    for (uint32_t t = 0; t < 6; ++t) {
      const std::vector<float> own(q.begin() + t * row, q.begin() + (t + 1) * row);
      const std::vector<float> alone =
          attend({apart(spec, 1), kBase + t, 1}, *target, own, keys, values);
      ASSERT_EQ(alone.size(), row);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + t * row, row * 4), 0)
          << "token " << t << " on " << target->name;
    }
    // The fallback adds up in another order.
    if (target->subgroupSize == 0)
      continue;
    if (first.empty())
      first = all;
    EXPECT_EQ(std::memcmp(first.data(), all.data(), all.size() * 4), 0) << target->name;
  }
}

TEST(IntegerAttention, StaysNearThatOfFloats) {
  SKIP_WITHOUT_DEVICE();
  Case c{integers(6, 2, 64, 192), 150, 3};
  Random random(29);
  const std::vector<float> keys = random.numbers(192 * 2 * 64),
                           values = random.numbers(192 * 2 * 64),
                           q = random.numbers(3 * 6 * 64);
  const std::vector<float> rounded = attend(c, deviceProfile(), q, keys, values);
  c.spec.integers = false;
  const std::vector<float> floats = attend(c, deviceProfile(), q, keys, values);
  ASSERT_EQ(rounded.size(), floats.size());
  double most = 0;
  for (size_t i = 0; i < floats.size(); ++i)
    most = std::max(most, double(std::abs(rounded[i] - floats[i])));
  EXPECT_LT(most, 5e-3);
  EXPECT_GT(most, 1e-6);
}

TEST(IntegerAttention, RefusesOtherCachesAndLongHeads) {
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  AttentionSpec spec = integers(4, 2, 64, 64);
  spec.kv = "f16";
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(spec.toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("expects a cache of i8 and heads of at most 1024 numbers with integers, but got f16 "
                                   "and 64"),
            std::string::npos);
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(integers(4, 2, 2048, 64).toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("but got i8 and 2048"), std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
