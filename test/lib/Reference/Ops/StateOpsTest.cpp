// Keys of zeros make all scores equal, so attention takes the mean of the visible values: which keys are visible shows
// in the result.
#include "test/lib/Reference/Evaluate.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir::llm::reference;

/// A cache of one head whose keys are zero. @append puts values at positions; @f attends with the given options.
static std::string program(const std::string &attention, const std::string &cache = "1x1, f32, f32, 32") {
  return "llm.kv_cache @kv : 1 x !llm.kv<" + cache + R"(>
  func.func @append(%v: tensor<?x1x1xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
    %kv = llm.kv @kv[0] : !llm.kv<)" +
         cache + R"(>
    %k = llm.scale %v by 0.0 : tensor<?x1x1xf32>
    llm.kv_append %kv, %k, %v at %p slots(%s) : !llm.kv<)" +
         cache + R"(>, tensor<?x1x1xf32>, tensor<?x1x1xf32>
    return
  }
  func.func @f(%q: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<)" +
         cache + ">\n    %y = llm.attention %q, %kv at %p scale(1.0) " + attention + " : tensor<?x1x1xf32>, !llm.kv<" +
         cache + R"(>
    return %y : tensor<?x1x1xf32>
  })";
}

/// Caches the i-th unit vector at position i for i < 10 and asks which positions a query sees: those whose element of
/// the result is not zero.
static std::vector<int> seen(const std::string &options, int32_t query, int count = 10) {
  const std::string cache = "!llm.kv<1x1x10, f32, f32, 32>";
  Program p("llm.kv_cache @kv : 1 x " + cache + R"(
  func.func @append(%k: tensor<?x1x1xf32>, %v: tensor<?x1x10xf32>, %p: tensor<?xi32>) {
    %kv = llm.kv @kv[0] : )" +
            cache + "\n    llm.kv_append %kv, %k, %v at %p : " + cache + R"(, tensor<?x1x1xf32>, tensor<?x1x10xf32>
    return
  }
  func.func @f(%q: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x10xf32> {
    %kv = llm.kv @kv[0] : )" +
            cache + "\n    %y = llm.attention %q, %kv at %p scale(1.0) " + options + " : tensor<?x1x1xf32>, " + cache +
            R"(
    return %y : tensor<?x1x10xf32>
  })");
  std::vector<double> units(size_t(count) * 10, 0);
  std::vector<int32_t> positions;
  for (int i = 0; i < count; ++i)
    units[size_t(i) * 11] = 1, positions.push_back(i);
  p.run({numbers({count, 1, 1}, std::vector<double>(size_t(count), 0)), numbers({count, 1, 10}, units),
         Tensor::ids(positions)},
        "append");
  const auto results = p.run({numbers({1, 1, 1}, {1}), Tensor::ids({query})});
  std::vector<int> found;
  if (results.size() == 1)
    for (auto [i, weight] : llvm::enumerate(results[0].toDoubles()))
      if (weight != 0)
        found.push_back(int(i));
  return found;
}

TEST(StateOps, CausalMask) {
  EXPECT_EQ(seen("", 3), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(seen("", 0), (std::vector<int>{0}));
}

TEST(StateOps, Windows) {
  EXPECT_EQ(seen("window(3)", 6), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(seen("window(3) sinks(2)", 6), (std::vector<int>{0, 1, 4, 5, 6}));
  EXPECT_EQ(seen("window(3) sinks(2)", 2), (std::vector<int>{0, 1, 2}));
}

TEST(StateOps, OtherMasks) {
  EXPECT_EQ(seen("mask full", 0, 4), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(seen("window(4) mask chunked", 6), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(seen("window(4) mask chunked", 4), (std::vector<int>{4}));
}

TEST(StateOps, BlockMasks) {
  EXPECT_EQ(seen("blocks <size = 2, local = 1>", 7), (std::vector<int>{6, 7}));
  EXPECT_EQ(seen("blocks <size = 2, local = 1, first = 1>", 6), (std::vector<int>{0, 1, 6}));
  EXPECT_EQ(seen("blocks <size = 2, local = 1, stride = 2>", 8), (std::vector<int>{0, 1, 4, 5, 8}));
}

TEST(StateOps, NothingCachedGivesZeros) {
  Program p(program(""));
  const auto results = p.run({numbers({1, 1, 1}, {1}), Tensor::ids({5})});
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {0}, 0);
}

TEST(StateOps, AttentionWithScoresSoftcapAndSlopes) {
  // Two query heads on one key head. Head 0 (query 1, slope ln 2): scores 0·… The keys are 0 and ln 3 at positions 0
  // and 1. Head 0: scores 0 + ln2·(0−1), ln 3 → weights 1/2 : 3. Head 1 (query 0, slope 0): 1 : 1.
  Program p(R"(
  llm.kv_cache @kv : 1 x !llm.kv<1x1, f32, f32, 8>
  func.func @f(%q: tensor<?x2x1xf32>, %k: tensor<?x1x1xf32>, %v: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x2x1xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 8>
    llm.kv_append %kv, %k, %v at %p : !llm.kv<1x1, f32, f32, 8>, tensor<?x1x1xf32>, tensor<?x1x1xf32>
    %b = llm.weight dense<[0.693147181, 0.0]> : tensor<2xf32>
    %y = llm.attention %q, %kv at %p bias(%b : tensor<2xf32>) scale(0.5) : tensor<?x2x1xf32>, !llm.kv<1x1, f32, f32, 8>
    return %y : tensor<?x2x1xf32>
  }
  func.func @g(%q: tensor<?x2x1xf32>, %p: tensor<?xi32>) -> tensor<?x2x1xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 8>
    %y = llm.attention %q, %kv at %p scale(0.5) softcap(0.1) : tensor<?x2x1xf32>, !llm.kv<1x1, f32, f32, 8>
    return %y : tensor<?x2x1xf32>
  })");
  auto results = p.run({numbers({2, 2, 1}, {0, 0, 2, 0}), numbers({2, 1, 1}, {0, 1.098612289}),
                        numbers({2, 1, 1}, {0, 7}), Tensor::ids({0, 1})});
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {0, 0, 6, 3.5}, 1e-5); // 7·3/3.5
  // Softcap 0.1: scores 0 and 0.1·tanh(10·ln 3) = 0.1, so the weight of 7 is e^0.1 / (1 + e^0.1).
  results = p.run({numbers({1, 2, 1}, {2, 0}), Tensor::ids({1})}, "g");
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {7 * 0.524979187, 3.5}, 1e-5);
}

TEST(StateOps, WeightsOfIntegersAreRoundedInBlocks) {
  // Heads of one number are ±127 times their scale, so a weight times the scale goes with the magnitude of the value:
  // 1, 10 and 100 are 1, 13 and 127 127ths of 100; position 8 has a block of its own.
  Program p(program("integers", "1x1, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 32"));
  const auto places = Tensor::ids({0, 1, 2, 8});
  p.run({numbers({4, 1, 1}, {1, -10, 100, 3}), places, places}, "append");
  const auto results = p.run({numbers({1, 1, 1}, {0.3}), Tensor::ids({8})});
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {((1 - 13) * 100.0 / 127 + 100 + 3) / 4}, 1e-4);
}

TEST(StateOps, QueriesOfIntegersAreRounded) {
  // The query 1, 0.1 is 127, 13 times 1/127, the keys 0, 0 and 0, 1; values 0 and 1.
  const std::string cache = "!llm.kv<1x2x1, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 8>";
  Program p("llm.kv_cache @kv : 1 x " + cache + R"(
  func.func @f(%q: tensor<?x1x2xf32>, %k: tensor<?x1x2xf32>, %v: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %kv = llm.kv @kv[0] : )" +
            cache + "\n    llm.kv_append %kv, %k, %v at %p : " + cache + R"(, tensor<?x1x2xf32>, tensor<?x1x1xf32>
    %y = llm.attention %q, %kv at %p scale(10.0) integers : tensor<?x1x2xf32>, )" +
            cache + "\n    return %y : tensor<?x1x1xf32>\n  }");
  const auto results = p.run({numbers({2, 1, 2}, {0, 0, 1, 0.1}), numbers({2, 1, 2}, {0, 0, 0, 1}),
                              numbers({2, 1, 1}, {0, 1}), Tensor::ids({0, 1})});
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {0, 1 / (1 + std::exp(-10 * 13.0 / 127))}, 1e-5);
}

TEST(StateOps, PrefillThenDecodeEqualsOneStep) {
  Program whole(program("")), apart(program(""));
  const std::vector<double> values = {1, 10, 100};
  const auto ids = Tensor::ids({0, 1, 2});
  whole.run({numbers({3, 1, 1}, values), ids, ids}, "append");
  const auto expected = whole.run({numbers({1, 1, 1}, {1}), Tensor::ids({2})});
  apart.run({numbers({2, 1, 1}, {1, 10}), Tensor::ids({0, 1}), Tensor::ids({0, 1})}, "append");
  apart.run({numbers({1, 1, 1}, {100}), Tensor::ids({2}), Tensor::ids({2})}, "append");
  const auto got = apart.run({numbers({1, 1, 1}, {1}), Tensor::ids({2})});
  ASSERT_EQ(got.size(), 1u);
  expectNear(got[0], expected[0].toDoubles(), 0);
  apart.evaluator->truncateState(1);
  expectNear(apart.run({numbers({1, 1, 1}, {1}), Tensor::ids({2})})[0], {1}, 0);
  apart.evaluator->resetState();
  expectNear(apart.run({numbers({1, 1, 1}, {1}), Tensor::ids({2})})[0], {0}, 0);
}

TEST(StateOps, AppendRefusesASlotOutside) {
  Program p(program("", "1x1, f32, f32, 4"));
  EXPECT_NE(p.fail({numbers({1, 1, 1}, {1}), Tensor::ids({4}), Tensor::ids({4})}, "append")
                .find("expects slots from 0 to 3, but got 4"),
            std::string::npos);
}

TEST(StateOps, AppendFromABase) {
  // Positions 0 and 0 (siblings) go to slots 2 and 3, whatever they are.
  Program p(R"(llm.kv_cache @kv : !llm.kv<1x1, f32, f32, 8>
  func.func @f(%v: tensor<?x1x1xf32>, %p: tensor<?xi32>, %b: tensor<1xi32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 8>
    llm.kv_append %kv, %v, %v at %p base(%b) : !llm.kv<1x1, f32, f32, 8>, tensor<?x1x1xf32>, tensor<?x1x1xf32>
    return
  })");
  p.run({numbers({2, 1, 1}, {5, 6}), Tensor::ids({0, 0}), Tensor::ids({2})});
  auto content = p.evaluator->cache("kv", 0);
  ASSERT_TRUE(mlir::succeeded(content));
  EXPECT_EQ(content->keys[2], 5);
  EXPECT_EQ(content->keys[3], 6);
}

TEST(StateOps, QuantisedCacheRoundsWhatItStores) {
  // i8 with an f16 scale a head: the larger of (100, 30) is exact but for the scale 100/127 in f16.
  const char *cache = "1x2, !llm.q<i8, *:f16>, f16, 8";
  const std::string text = std::string("llm.kv_cache @kv : 1 x !llm.kv<") + cache + R"(>
  func.func @f(%k: tensor<?x1x2xf32>, %p: tensor<?xi32>) {
    %kv = llm.kv @kv[0] : !llm.kv<)" +
                           cache + R"(>
    llm.kv_append %kv, %k, %k at %p : !llm.kv<)" +
                           cache + R"(>, tensor<?x1x2xf32>, tensor<?x1x2xf32>
    return
  })";
  Program p(text);
  p.run({numbers({1, 1, 2}, {100, 30.1}), Tensor::ids({0})});
  auto content = p.evaluator->cache("kv", 0);
  ASSERT_TRUE(mlir::succeeded(content));
  const double scale = 0.78759765625; // 100/127 in f16
  EXPECT_NEAR(content->keys[0], 127 * scale, 1e-5);
  EXPECT_NEAR(content->keys[1], 38 * scale, 1e-5);
  EXPECT_NEAR(content->values[1], 30.1, 1e-5); // f16 is kept in full …
  Options options;
  options.roundCaches = true;
  Program rounded(text, options);
  rounded.run({numbers({1, 1, 2}, {100, 30.1}), Tensor::ids({0})});
  content = rounded.evaluator->cache("kv", 0);
  ASSERT_TRUE(mlir::succeeded(content));
  EXPECT_EQ(content->values[1], 30.09375); // … unless asked for
}

TEST(StateOps, ValuesThatAreAPrefixOfTheKeys) {
  Program p(R"(
  llm.kv_cache @kv : 1 x !llm.kv<1x3, f32, prefix<2>, 8>
  func.func @f(%q: tensor<?x2x3xf32>, %k: tensor<?x1x3xf32>, %p: tensor<?xi32>) -> tensor<?x2x2xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<1x3, f32, prefix<2>, 8>
    llm.kv_append %kv, %k at %p : !llm.kv<1x3, f32, prefix<2>, 8>, tensor<?x1x3xf32>
    %y = llm.attention %q, %kv at %p scale(1.0) : tensor<?x2x3xf32>, !llm.kv<1x3, f32, prefix<2>, 8>
    return %y : tensor<?x2x2xf32>
  })");
  const auto results = p.run(
      {numbers({2, 2, 3}, std::vector<double>(12, 0)), numbers({2, 1, 3}, {1, 2, 9, 3, 6, 9}), Tensor::ids({0, 1})});
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {1, 2, 1, 2, 2, 4, 2, 4}, 1e-6);
}

/// Six tokens as a prefix, then a tree.
static std::string treeProgram(const std::string &options = "") {
  return program("") + R"(
  func.func @tree(%q: tensor<?x1x1xf32>, %base: tensor<1xi32>, %m: tensor<?x2xi32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 32>
    %y = llm.tree_attention %q, %kv base %base mask %m at %p scale(1.0) )" +
         options + R"( : tensor<?x1x1xf32>, !llm.kv<1x1, f32, f32, 32>
    return %y : tensor<?x1x1xf32>
  }
  func.func @compact(%base: tensor<1xi32>, %a: tensor<?xi32>, %n: tensor<1xi32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 32>
    llm.kv_compact %kv base %base accepted %a count %n : !llm.kv<1x1, f32, f32, 32>, tensor<?xi32>
    return
  }
  func.func @evict(%keep: tensor<?xi32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 32>
    llm.kv_evict %kv keep %keep : !llm.kv<1x1, f32, f32, 32>, tensor<?xi32>
    return
  })";
}

TEST(StateOps, TreeAttentionSeesPrefixAndAncestors) {
  Program p(treeProgram());
  // Two cached tokens; nodes 0, 1 (child of 0), 2 (child of 0) at slots 2, 3, 4, the siblings at one position.
  p.run({numbers({5, 1, 1}, {1, 2, 4, 8, 16}), Tensor::ids({0, 1, 2, 3, 3}), Tensor::ids({0, 1, 2, 3, 4})}, "append");
  const auto mask = Tensor::of<int32_t>({3, 2}, {1, 0, 3, 0, 5, 0});
  auto results = p.run({numbers({3, 1, 1}, {1, 1, 1}), Tensor::ids({2}), mask, Tensor::ids({2, 3, 3})}, "tree");
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {7 / 3.0, 15 / 4.0, 23 / 4.0}, 1e-5);
  // Within a window of two positions node 2 sees its parent and itself.
  Program windowed(treeProgram("window(2)"));
  windowed.run({numbers({5, 1, 1}, {1, 2, 4, 8, 16}), Tensor::ids({0, 1, 2, 3, 3}), Tensor::ids({0, 1, 2, 3, 4})},
               "append");
  results = windowed.run({numbers({3, 1, 1}, {1, 1, 1}), Tensor::ids({2}), mask, Tensor::ids({2, 3, 3})}, "tree");
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {3, 6, 10}, 1e-5);
}

TEST(StateOps, RejectedGarbageDoesNotShow) {
  Program p(treeProgram());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  p.run({numbers({3, 1, 1}, {1, nan, 4}), Tensor::ids({0, 1, 1}), Tensor::ids({0, 1, 2})}, "append");
  const auto results =
      p.run({numbers({1, 1, 1}, {1}), Tensor::ids({1}), Tensor::of<int32_t>({1, 2}, {2, 0}), Tensor::ids({1})}, "tree");
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {2.5}, 1e-6);
}

TEST(StateOps, CompactMovesThePathAndForgetsTheRest) {
  Program p(treeProgram());
  p.run({numbers({6, 1, 1}, {1, 2, 4, 8, 16, 32}), Tensor::ids({0, 1, 2, 2, 3, 3}), Tensor::ids({0, 1, 2, 3, 4, 5})},
        "append");
  // Base 1: nodes 0, 2, 4 are slots 1, 3, 5.
  p.run({Tensor::ids({1}), Tensor::ids({0, 2, 4, -1, -1}), Tensor::ids({3})}, "compact");
  auto content = p.evaluator->cache("kv", 0);
  ASSERT_TRUE(mlir::succeeded(content));
  EXPECT_EQ(content->values, (std::vector<double>{1, 2, 8, 32}));
  EXPECT_EQ(content->positions, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_NE(p.fail({Tensor::ids({1}), Tensor::ids({2, 0}), Tensor::ids({2})}, "compact")
                .find("expects ascending nodes of the tree"),
            std::string::npos);
}

TEST(StateOps, EvictKeepsPositions) {
  Program p(treeProgram());
  p.run({numbers({4, 1, 1}, {1, 2, 4, 8}), Tensor::ids({0, 1, 2, 3}), Tensor::ids({0, 1, 2, 3})}, "append");
  p.run({Tensor::ids({0, 3})}, "evict");
  auto content = p.evaluator->cache("kv", 0);
  ASSERT_TRUE(mlir::succeeded(content));
  EXPECT_EQ(content->values, (std::vector<double>{1, 8}));
  EXPECT_EQ(content->positions, (std::vector<int32_t>{0, 3}));
}

TEST(StateOps, EvictionBehindSinksTurnsKeysBack) {
  // Keys as if what stays had been appended at its new positions in the first place.
  for (const std::string cache : {"2x8, f32, f32, 16", "2x8, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 16"}) {
    const bool quantised = cache.find("llm.q") != std::string::npos;
    const std::string type = "!llm.kv<" + cache + ">";
    const std::string text = "llm.kv_cache @kv : 1 x " + type + R"(
  func.func @append(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
    %kv = llm.kv @kv[0] : )" +
                             type + R"(
    %r = llm.rope %x at %p base(100.0) dims(4) scale(0.5) amplitude(1.25) interleaved : tensor<?x2x8xf32>
    %k = llm.hadamard %r block(4) : tensor<?x2x8xf32>
    llm.kv_append %kv, %k, %x at %p : )" +
                             type + R"(, tensor<?x2x8xf32>, tensor<?x2x8xf32>
    return
  }
  func.func @evict(%s: tensor<1xi32>, %d: tensor<1xi32>) {
    %kv = llm.kv @kv[0] : )" +
                             type + R"(
    llm.kv_evict %kv sinks(%s) drop(%d) base(100.0) dims(4) scale(0.5) interleaved hadamard(4) : )" +
                             type + R"(
    return
  })";
    std::vector<double> x, stays;
    for (int i = 0; i < 6 * 16; ++i)
      x.push_back(double(i * 37 % 19) / 7 - 1);
    for (int slot : {0, 3, 4, 5})
      stays.insert(stays.end(), x.begin() + slot * 16, x.begin() + (slot + 1) * 16);
    Program p(text), fresh(text);
    p.run({numbers({6, 2, 8}, x), Tensor::ids({0, 1, 2, 3, 4, 5})}, "append");
    p.run({Tensor::ids({1}), Tensor::ids({2})}, "evict");
    fresh.run({numbers({4, 2, 8}, stays), Tensor::ids({0, 1, 2, 3})}, "append");
    auto got = p.evaluator->cache("kv", 0), right = fresh.evaluator->cache("kv", 0);
    ASSERT_TRUE(mlir::succeeded(got) && mlir::succeeded(right));
    EXPECT_EQ(got->positions, (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(got->values, right->values);
    ASSERT_EQ(got->keys.size(), right->keys.size());
    for (size_t i = 0; i < got->keys.size(); ++i)
      EXPECT_NEAR(got->keys[i], right->keys[i], quantised ? 0.04 : 1e-5) << i;
    EXPECT_NE(p.fail({Tensor::ids({2}), Tensor::ids({3})}, "evict")
                  .find("expects sinks and slots to drop that the cache holds, 4 at most, but got 2 and 3"),
              std::string::npos);
  }
}

TEST(StateOps, TreesSkipHiddenBlocksToo) {
  Program p(treeProgram("blocks <size = 2, local = 1>"));
  // Positions 0 … 3 and two siblings at position 4, whose block has the two of them alone.
  p.run({numbers({6, 1, 1}, {1, 2, 4, 8, 16, 32}), Tensor::ids({0, 1, 2, 3, 4, 4}), Tensor::ids({0, 1, 2, 3, 4, 5})},
        "append");
  const auto mask = Tensor::of<int32_t>({2, 2}, {1, 0, 2, 0});
  const auto results =
      p.run({numbers({2, 1, 1}, {1, 1}), Tensor::ids({4}), mask, Tensor::ids({4, 4})}, "tree");
  ASSERT_EQ(results.size(), 1u);
  expectNear(results[0], {16, 32}, 1e-6);
}
