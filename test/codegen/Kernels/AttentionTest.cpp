#include "codegen/Kernels/Attention.h"
#include "StepState.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

struct Case {
  AttentionSpec spec;
  uint32_t base, width;
};

std::vector<double> expected(const Case &c, const std::vector<float> &q,
                             const std::vector<float> &keys,
                             const std::vector<float> &values) {
  const AttentionSpec &s = c.spec;
  std::vector<double> y(size_t(c.width) * s.heads * s.headSize);
  for (uint32_t t = 0; t < c.width; ++t)
    for (int64_t h = 0; h < s.heads; ++h) {
      int64_t g = h / (s.heads / s.kvHeads), position = c.base + t;
      size_t row = (size_t(t) * s.heads + h) * s.headSize;
      std::vector<double> score;
      std::vector<int64_t> seen;
      double most = -1e300;
      for (int64_t j = 0; j <= position; ++j) {
        if (s.window && position - j >= s.window && j >= s.sinks)
          continue;
        double sum = 0;
        for (int64_t e = 0; e < s.headSize; ++e)
          sum +=
              double(q[row + e]) * keys[(j * s.kvHeads + g) * s.headSize + e];
        sum *= s.scale;
        if (s.softcap != 0)
          sum = s.softcap * std::tanh(sum / s.softcap);
        score.push_back(sum);
        seen.push_back(j);
        most = std::max(most, sum);
      }
      double total = 0;
      for (double &value : score)
        total += value = std::exp(value - most);
      for (size_t i = 0; i < seen.size(); ++i)
        for (int64_t e = 0; e < s.headSize; ++e)
          y[row + e] += score[i] / total *
                        values[(seen[i] * s.kvHeads + g) * s.headSize + e];
    }
  return y;
}

/// Runs the case with the cache past the step poisoned by NaN.
std::vector<float> attend(const Case &c, const TargetProfile &profile,
                          const std::vector<float> &q,
                          const std::vector<float> &keys,
                          const std::vector<float> &values) {
  bool half = c.spec.kv == "f16";
  const CompiledKernel *kernel =
      compile("attention", c.spec.toAttr(context()), profile);
  if (!kernel)
    return {};
  auto poisoned = [&](const std::vector<float> &numbers) {
    std::vector<uint32_t> words = toWords(numbers, half);
    size_t live = size_t(c.base + c.width) * c.spec.kvHeads * c.spec.headSize /
                  (half ? 2 : 1);
    for (size_t i = live; i < words.size(); ++i)
      words[i] = half ? 0x7e007e00 : 0x7fc00000;
    return toBytes(words);
  };
  std::vector<Bytes> buffers = {
      toBytes(q), toBytes(control(c.base, c.width, c.spec.capacity)),
      poisoned(keys), poisoned(values), Bytes(q.size() * 4)};
  run(*kernel, buffers, c.width);
  return fromBytes<float>(buffers[4]);
}

void check(const Case &c, const TargetProfile &profile, uint64_t seed) {
  const AttentionSpec &s = c.spec;
  Random random(seed);
  std::vector<float> q = random.numbers(size_t(c.width) * s.heads * s.headSize);
  size_t cache = size_t(s.capacity) * s.kvHeads * s.headSize;
  bool half = s.kv == "f16";
  std::vector<float> keys =
      fromWords(toWords(random.numbers(cache), half), half);
  std::vector<float> values =
      fromWords(toWords(random.numbers(cache), half), half);
  std::vector<float> y = attend(c, profile, q, keys, values);
  ASSERT_EQ(y.size(), q.size());
  std::vector<double> right = expected(c, q, keys, values);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], right[i], 3e-5)
        << "base " << c.base << " width " << c.width << " number " << i
        << " head " << s.headSize << " on " << profile.name;
}

AttentionSpec shape(int64_t heads, int64_t kvHeads, int64_t headSize,
                    int64_t capacity, StringRef kv = "f16") {
  AttentionSpec spec;
  spec.heads = heads, spec.kvHeads = kvHeads, spec.headSize = headSize;
  spec.capacity = capacity, spec.kv = kv.str();
  spec.scale = 1 / std::sqrt(double(headSize));
  return spec;
}

TEST(Attention, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(7);
  for (int i = 0; i < 20; ++i) {
    int64_t groups = random.among<int64_t>({1, 2, 3}),
            ratio = random.among<int64_t>({1, 2, 3, 4});
    AttentionSpec spec = shape(groups * ratio, groups,
                               random.among<int64_t>({16, 24, 48, 64, 80, 128}),
                               160, random.among<std::string>({"f16", "f32"}));
    if (random.below(3) == 0)
      spec.window = 1 + random.below(40);
    if (spec.window && random.below(2))
      spec.sinks = 1 + random.below(9);
    if (random.below(4) == 0)
      spec.softcap = 5;
    for (uint32_t width : {1, 7, 64})
      check({spec, random.below(160 - width + 1), width},
            i % 4 == 3 ? profile("generic") : deviceProfile(), 100 + i);
  }
}

TEST(Attention, Edges) {
  SKIP_WITHOUT_DEVICE();
  // The first token, chunk ends, the last slot of the context.
  for (uint32_t base : {0u, 6u, 7u, 8u, 9u, 63u, 64u, 65u, 127u})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")})
      check({shape(6, 2, 64, 128), base, 1}, profile(target), base);
}

TEST(Attention, ATokensBitsDoNotDependOnTheWidthOfItsStep) {
  SKIP_WITHOUT_DEVICE();
  AttentionSpec spec = shape(9, 3, 64, 64);
  for (StringRef target :
       {StringRef(deviceProfile().name), StringRef("generic")}) {
    Random random(5);
    std::vector<float> keys = random.numbers(64 * 3 * 64),
                       values = random.numbers(64 * 3 * 64),
                       q = random.numbers(16 * 9 * 64);
    std::vector<float> all =
        attend({spec, 21, 16}, profile(target), q, keys, values);
    ASSERT_EQ(all.size(), q.size());
    for (uint32_t t = 0; t < 16; ++t) {
      std::vector<float> own(q.begin() + t * 576, q.begin() + (t + 1) * 576);
      std::vector<float> alone =
          attend({spec, 21 + t, 1}, profile(target), own, keys, values);
      ASSERT_EQ(alone.size(), 576u);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + t * 576, 576 * 4), 0)
          << "token " << t << " on " << target.str();
    }
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(
      shape(5, 2, 64, 64).toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("expects heads to be a multiple"),
            std::string::npos);
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(
      shape(4, 2, 63, 64).toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("expects an even head size"),
            std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
