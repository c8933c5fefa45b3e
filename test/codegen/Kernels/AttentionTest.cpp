#include "AttentionProblem.h"
#include "codegen/Kernels/AttentionGroups.h"

namespace mlir::llm::test {
namespace {

TEST(Attention, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(7);
  for (int i = 0; i < 11; ++i) {
    const TargetProfile &target =
        i % 4 == 3 ? profile("generic") : deviceProfile();
    int64_t groups = random.among<int64_t>({1, 2, 3}),
            ratio = random.among<int64_t>({1, 2, 3, 4, 10});
    AttentionSpec spec = shape(groups * ratio, groups,
                               random.among<int64_t>({16, 24, 48, 64, 80, 128}),
                               160, random.among<std::string>({"f16", "f32"}));
    if (i % 2) // heads that all of them divide
      spec = shape(groups * ratio, groups, random.among<int64_t>({64, 128}), 160,
                   random.among<std::string>({"i8", "u4x32", "u4x64"}));
    spec.split = random.among<int64_t>({64, 128, 256});
    if (random.below(3) == 0)
      spec.window = 1 + random.below(90);
    if (spec.window && random.below(2))
      spec.sinks = 1 + random.below(9);
    if (random.below(4) == 0)
      spec.softcap = 5;
    for (uint32_t width : {1, 6, 7, 64}) {
      spec.tokens = spec.tokensFor(width, target);
      uint32_t base = random.below(160 - width + 1);
      check({random.below(2) ? apart(spec, width) : spec, base, width}, target,
            100 + i);
    }
  }
}

TEST(Attention, ShorterValuesAndSlopes) {
  SKIP_WITHOUT_DEVICE();
  for (auto [size, valueSize] : {std::pair(24, 16), {64, 30}, {24, 0}})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      AttentionSpec spec = shape(6, 2, size, 160);
      spec.split = 64, spec.valueSize = valueSize, spec.bias = valueSize != 30;
      for (uint32_t width : {1u, 7u}) {
        spec.tokens = spec.tokensFor(width, profile(target));
        check({spec, 130, width}, profile(target), width);
        check({apart(spec, width), 70, width}, profile(target), width);
      }
    }
}

TEST(Attention, Edges) {
  SKIP_WITHOUT_DEVICE();
  // The first token, ends of chunks and splits, the last slot of the context.
  AttentionSpec spec = shape(6, 2, 64, 128);
  spec.split = 64;
  for (uint32_t base : {0u, 6u, 7u, 8u, 9u, 63u, 64u, 65u, 127u})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      check({spec, base, 1}, profile(target), base);
      check({apart(spec, 1), base, 1}, profile(target), base);
    }
}

TEST(Attention, ATokensBitsDoNotDependOnTheWidthOfItsStep) {
  SKIP_WITHOUT_DEVICE();
  // Alone with its splits apart, or among others with its splits in a row.
  for (auto [window, kv] :
       {std::pair(0, "f16"), {50, "f16"}, {50, "i8"}, {0, "u4x32"}, {-1, "f16"}})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      AttentionSpec spec = shape(9, 3, 64, 192, kv);
      spec.split = 64, spec.window = std::max(window, 0);
      if (window < 0)
        spec.blocks = {12, 2, 1, 3};
      Random random(5);
      size_t row = 9 * 64;
      std::vector<float> keys = random.numbers(192 * 3 * 64),
                         values = random.numbers(192 * 3 * 64),
                         q = random.numbers(16 * row);
      for (uint32_t base : {21u, 55u, 120u}) {
        AttentionSpec together = spec;
        together.tokens = spec.tokensFor(16, profile(target));
        std::vector<float> all =
            attend({together, base, 16}, profile(target), q, keys, values);
        ASSERT_EQ(all.size(), q.size());
        std::vector<float> splits = attend({apart(together, 16), base, 16},
                                           profile(target), q, keys, values);
        EXPECT_EQ(std::memcmp(all.data(), splits.data(), q.size() * 4), 0)
            << "base " << base << " window " << window << " kv " << kv
            << " on " << target.str();
        for (uint32_t t = 0; t < 16; ++t) {
          std::vector<float> own(q.begin() + t * row,
                                 q.begin() + (t + 1) * row);
          std::vector<float> alone = attend({apart(spec, 1), base + t, 1},
                                            profile(target), own, keys, values);
          ASSERT_EQ(alone.size(), row);
          EXPECT_EQ(std::memcmp(alone.data(), all.data() + t * row, row * 4), 0)
              << "token " << t << " base " << base << " window " << window
              << " on " << target.str();
        }
      }
    }
}

TEST(Attention, HiddenBlocksAreLeftOut) {
  SKIP_WITHOUT_DEVICE();
  // Blocks of whole chunks, of several, and of no whole number of them.
  for (BlockShape blocks : {BlockShape{64, 1, 1, 0}, {16, 2, 0, 3},
                            {24, 1, 1, 2}, {5, 3, 2, 0}})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      AttentionSpec spec = shape(6, 2, 64, 160);
      spec.split = 64, spec.blocks = blocks;
      const uint32_t width = blocks.size == 5 ? 1 : 6;
      spec.tokens = spec.tokensFor(width, profile(target));
      check({blocks.stride ? apart(spec, width) : spec, 143, width},
            profile(target), width);
    }
}

// Skipping a block gives the bits of masking it: with blocks of one position
// they are a window and its sinks, which are masked where a split shows any.
TEST(Attention, SkippedIsMaskedToTheBit) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef target :
       {StringRef(deviceProfile().name), StringRef("generic")}) {
    AttentionSpec masked = shape(6, 2, 64, 192), skipped = masked;
    masked.split = skipped.split = 64;
    masked.window = 50, masked.sinks = 3;
    skipped.blocks = {1, 50, 3, 0};
    Random random(17);
    std::vector<float> keys = random.numbers(192 * 2 * 64),
                       values = random.numbers(192 * 2 * 64),
                       q = random.numbers(6 * 6 * 64);
    auto of = [&](AttentionSpec spec) {
      spec.tokens = masked.tokensFor(6, profile(target));
      return attend({target == "generic" ? apart(spec, 6) : spec, 180, 6},
                    profile(target), q, keys, values);
    };
    const std::vector<float> right = of(masked), got = of(skipped);
    ASSERT_EQ(got.size(), q.size());
    EXPECT_EQ(std::memcmp(right.data(), got.data(), q.size() * 4), 0)
        << target.str();
  }
}

// What is not read cannot show: hidden blocks full of NaN.
TEST(Attention, HiddenBlocksAreNotRead) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef target :
       {StringRef(deviceProfile().name), StringRef("generic")}) {
    AttentionSpec spec = shape(6, 2, 64, 320);
    spec.split = 128, spec.blocks = {64, 1, 1, 0};
    Random random(19);
    std::vector<float> keys = random.numbers(320 * 2 * 64),
                       values = random.numbers(320 * 2 * 64),
                       q = random.numbers(4 * 6 * 64);
    spec.tokens = spec.tokensFor(4, profile(target));
    const Case c{spec, 300, 4};
    const std::vector<float> right = attend(c, profile(target), q, keys, values);
    for (std::vector<float> *side : {&keys, &values})
      std::fill(side->begin() + 64 * 2 * 64, side->begin() + 256 * 2 * 64,
                std::nanf(""));
    const std::vector<float> got = attend(c, profile(target), q, keys, values);
    ASSERT_EQ(got.size(), right.size());
    EXPECT_EQ(std::memcmp(right.data(), got.data(), got.size() * 4), 0)
        << target.str();
  }
}

// How words of the cache are fetched, and how many tokens share them, is the
// schedule's to choose: numbers stay as they are.
TEST(Attention, BitsDoNotDependOnTheSchedule) {
  SKIP_WITHOUT_DEVICE();
  AttentionSpec spec = shape(6, 2, 64, 192);
  spec.split = 64;
  Random random(11);
  std::vector<float> keys = random.numbers(192 * 2 * 64),
                     values = random.numbers(192 * 2 * 64),
                     q = random.numbers(8 * 6 * 64), first;
  for (auto [word, texels, tokens] :
       {std::tuple(32, 0, 1), {32, 1, 1}, {32, 1, 2}, {32, 0, 2}}) {
    TargetProfile target = deviceProfile();
    target.name += "_" + std::to_string(texels);
    target.schedules["attention"] = {
        {{}, {{"word", int64_t(word)}, {"texels", int64_t(texels)}}}};
    spec.tokens = tokens;
    std::vector<float> y = attend({spec, 120, 8}, target, q, keys, values);
    ASSERT_EQ(y.size(), q.size());
    if (first.empty())
      first = y;
    EXPECT_EQ(std::memcmp(first.data(), y.data(), y.size() * 4), 0)
        << texels << " " << tokens;
  }
}

// Eight tokens share their loads where contexts are long and steps wide: more
// code than a short prompt should wait for.
TEST(Attention, TilesGrowWhereItPays) {
  auto lavapipe = findProfile("lavapipe");
  ASSERT_TRUE(bool(lavapipe));
  EXPECT_EQ(shape(9, 3, 64, 2048).tokensFor(64, *lavapipe), 4);
  EXPECT_EQ(shape(9, 3, 64, 4096).tokensFor(64, *lavapipe), 8);
  EXPECT_EQ(shape(9, 3, 64, 4096).tokensFor(8, *lavapipe), 4);
  EXPECT_EQ(shape(9, 3, 64, 4096).tokensFor(1, *lavapipe), 1);
}

// Scales of a cache in integers take registers; codes that are multiplied as
// such take fewer.
TEST(Attention, TilesOverIntegersFitTheRegisters) {
  auto rdna3 = findProfile("rdna3");
  ASSERT_TRUE(bool(rdna3));
  EXPECT_EQ(shape(9, 3, 64, 2048).tokensFor(64, *rdna3), 2);
  EXPECT_EQ(shape(9, 3, 64, 2048, "u4x32").tokensFor(64, *rdna3), 1);
  AttentionSpec codes = shape(9, 3, 64, 2048, "i8");
  EXPECT_EQ(codes.tokensFor(64, *rdna3), 1);
  codes.integers = true;
  EXPECT_EQ(codes.tokensFor(64, *rdna3), 2);
}

// Fewer query heads share the loads of a key head.
TEST(Attention, PartsOfAGroup) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef target : {StringRef(deviceProfile().name), StringRef("generic")}) {
    AttentionSpec spec = shape(8, 2, 64, 160);
    EXPECT_EQ(spec.groupHeads(), 4);
    spec.split = 64, spec.group = 3;
    EXPECT_EQ(spec.groupHeads(), 2);
    for (uint32_t width : {1u, 7u}) {
      spec.tokens = spec.tokensFor(width, profile(target));
      check({spec, 130, width}, profile(target), width);
      check({apart(spec, width), 70, width}, profile(target), width);
    }
  }
}

TEST(Attention, GroupsFollowTheContext) {
  SKIP_WITHOUT_DEVICE();
  AttentionSpec spec = shape(9, 3, 64, 2048);
  spec.tokens = 4;
  auto counts = [&](uint32_t base, uint32_t count) {
    const CompiledKernel *kernel =
        compile("attention_groups", AttentionGroupsSpec(spec).toAttr(context()),
                deviceProfile());
    std::vector<Bytes> buffers = {toBytes(control(base, count, 2048)),
                                  Bytes(12), Bytes(12)};
    run(*kernel, buffers, 1);
    auto list = fromBytes<uint32_t>(buffers[1]);
    for (uint32_t word : fromBytes<uint32_t>(buffers[2]))
      list.push_back(word);
    return list;
  };
  using Counts = std::vector<uint32_t>;
  EXPECT_EQ(counts(0, 1), (Counts{3, 1, 1, 0, 1, 1}));
  EXPECT_EQ(counts(255, 1), (Counts{3, 1, 1, 0, 1, 1}));
  EXPECT_EQ(counts(255, 2), (Counts{3, 1, 2, 9, 2, 1}));
  EXPECT_EQ(counts(2039, 9), (Counts{3, 3, 8, 9, 9, 1}));
  spec.window = 256;
  EXPECT_EQ(counts(511, 1), (Counts{3, 1, 1, 0, 1, 1}));
  EXPECT_EQ(counts(1000, 5), (Counts{3, 2, 2, 9, 5, 1}));
  EXPECT_EQ(spec.partsFor(1), 2);
  EXPECT_EQ(spec.partsFor(64), 3);
  spec.sinks = 4;
  EXPECT_EQ(counts(1000, 5), (Counts{3, 2, 4, 9, 5, 1}));
}

TEST(Attention, SplitsAreFewWhateverTheContext) {
  for (int64_t capacity : {1, 256, 2048, 16384, 16385, 131072, 1 << 20}) {
    AttentionSpec spec = shape(9, 3, 64, capacity);
    EXPECT_LE(spec.partsFor(1), 64) << capacity;
    EXPECT_GE(spec.split, 256) << capacity;
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
  EXPECT_NE(takeDiagnostics().find("expects a head size that is a multiple of "
                                   "2 with a cache of f16, but got 63"),
            std::string::npos);
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(
      shape(4, 2, 48, 64, "u4x32").toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("multiple of 32"), std::string::npos);
  EXPECT_TRUE(failed(AttentionSpec::fromAttr(
      shape(4, 2, 64, 64, "i4").toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("expects kv to be one of f16, f32, i8"),
            std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
