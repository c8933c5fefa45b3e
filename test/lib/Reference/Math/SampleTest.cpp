#include "lib/Reference/Math/Sample.h"
#include "lib/Reference/Math/Noise.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace mlir::llm::reference;

namespace {
int32_t draw(std::vector<float> logits, const SampleParameters &parameters, std::vector<int32_t> history = {},
             uint32_t position = 0) {
  return sample<float>(logits, parameters, history, position);
}

/// How often each token is drawn over positions 0 … n-1.
std::map<int32_t, int> histogram(const std::vector<float> &logits, SampleParameters parameters, int n) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < n; ++i)
    ++counts[draw(logits, parameters, {}, uint32_t(i))];
  return counts;
}

/// Pearson's statistic of counts against probabilities.
double chiSquare(std::map<int32_t, int> counts, const std::vector<double> &probabilities, int n) {
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == 0) {
      EXPECT_EQ(counts[int32_t(i)], 0) << "token " << i << " is excluded";
      continue;
    }
    const double expected = probabilities[i] * n;
    sum += (counts[int32_t(i)] - expected) * (counts[int32_t(i)] - expected) / expected;
  }
  return sum;
}

const std::vector<float> kLogits = {2, 1, 0, -1, 1.5};
} // namespace

// The table of docs/sampling.md.
TEST(Noise, DocumentedVectors) {
  struct Row {
    uint32_t low, high, position, token, first, second, bits;
    float gumbel;
  };
  for (const Row &row : {Row{0, 0, 0, 0, 0x64625032, 0x351c108c, 0x7ecf30d3, 0.353120267f},
                         Row{1, 0, 0, 0, 0x5e2d1772, 0x29970f27, 0x169c0b19, -0.886575758f},
                         Row{1, 0, 1, 0, 0x14e498f0, 0xea3e5f35, 0xa1e0abb9, 0.780150771f},
                         Row{1, 0, 1, 1, 0x14e498f0, 0xea3e5f35, 0x7c4ef310, 0.325159788f},
                         Row{42, 7, 1000, 49151, 0x62df8a19, 0x49e0debf, 0xeb17d19f, 2.46279931f},
                         Row{~0u, ~0u, ~0u, ~0u, 0x99b5e683, 0xd3d5eefa, 0xbdcd4d34, 1.2066555f}}) {
    const NoiseKey key(row.low, row.high, row.position);
    EXPECT_EQ(key.first, row.first);
    EXPECT_EQ(key.second, row.second);
    EXPECT_EQ(key.bits(row.token), row.bits);
    EXPECT_EQ(gumbel(key, row.token), row.gumbel);
  }
}

TEST(Noise, IsTheGumbelOfItsUniform) {
  for (uint32_t i = 0; i < (1u << 23); i += 97) {
    const double exact = -std::log(-std::log((2.0 * i + 1) * 0x1p-24));
    ASSERT_NEAR(gumbel(i << 9), exact, 1.1e-6) << i;
  }
  EXPECT_NEAR(gumbel(0u), -2.81154, 1e-5);
  EXPECT_NEAR(gumbel(~0u), 16.63553, 1e-5);
}

TEST(Sample, GreedyTakesTheFirstOfEquals) {
  EXPECT_EQ(draw({1, 3, 3, 2}, {}), 1);
  EXPECT_EQ(draw({-1, -3}, {}), 0);
  EXPECT_EQ(draw({std::nanf(""), -3, std::nanf("")}, {}), 1);
}

TEST(Sample, FollowsTheSoftmax) {
  for (float temperature : {0.7f, 1.0f, 1.5f}) {
    SampleParameters parameters;
    parameters.temperature = temperature, parameters.seedLow = 11;
    std::vector<double> p;
    double sum = 0;
    for (float z : kLogits)
      sum += p.emplace_back(std::exp(z / temperature));
    for (double &value : p)
      value /= sum;
    // 4 degrees of freedom: 18.5 is passed once in a thousand.
    EXPECT_LT(chiSquare(histogram(kLogits, parameters, 20000), p, 20000), 18.5) << "temperature " << temperature;
  }
}

TEST(Sample, TopKKeepsEqualValues) {
  SampleParameters parameters;
  parameters.temperature = 1, parameters.topK = 2;
  auto counts = histogram({1, 2, 1, 0}, parameters, 3000);
  EXPECT_EQ(counts.count(3), 0u);
  EXPECT_EQ(counts.size(), 3u); // two tokens share the second rank
}

TEST(Sample, TopPKeepsTheShortestPrefix) {
  SampleParameters parameters;
  parameters.temperature = 1;
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.2f)};
  parameters.topP = 0.49f;
  EXPECT_EQ(histogram(logits, parameters, 500).size(), 1u);
  parameters.topP = 0.51f;
  EXPECT_LT(chiSquare(histogram(logits, parameters, 20000), {0.375, 0.625, 0}, 20000), 10.8);
  parameters.topP = 0.81f;
  EXPECT_LT(chiSquare(histogram(logits, parameters, 20000), {0.3, 0.5, 0.2}, 20000), 13.8);
  parameters.topP = 0;
  EXPECT_EQ(histogram(logits, parameters, 500).size(), 1u);
}

TEST(Sample, TopPCountsAfterTopK) {
  SampleParameters parameters;
  parameters.temperature = 1, parameters.topK = 2, parameters.topP = 0.6f;
  // Of 0.5, 0.3, 0.2 the first two are kept, and 0.5 / 0.8 reaches 0.6 alone.
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.2f)};
  EXPECT_EQ(histogram(logits, parameters, 500).size(), 1u);
}

TEST(Sample, MinPIsRelativeToTheBest) {
  SampleParameters parameters;
  parameters.temperature = 1, parameters.minP = 0.5f;
  const std::vector<float> logits = {std::log(0.3f), std::log(0.5f), std::log(0.2f)};
  EXPECT_LT(chiSquare(histogram(logits, parameters, 20000), {0.375, 0.625, 0}, 20000), 10.8);
}

TEST(Sample, RepeatPenaltyLooksBackOnlySoFar) {
  SampleParameters parameters;
  parameters.repeatPenalty = 2, parameters.repeatLastN = 2;
  EXPECT_EQ(draw({4, 3, -1}, parameters, {0, 1, 2}),
            0); // token 0 is three back
  EXPECT_EQ(draw({4, 3, -1}, parameters, {1, 0, 0}),
            1);                                         // 4 / 2, once although it occurs twice
  EXPECT_EQ(draw({-3, -2, -9}, parameters, {2, 1}), 0); // −2 · 2
  EXPECT_EQ(draw({4, 3, -1}, parameters, {7, -1}),
            0); // ids outside the vocabulary are passed over
}

TEST(Sample, NoiseDependsOnSeedPositionAndTokenAlone) {
  SampleParameters parameters;
  parameters.temperature = 1, parameters.seedLow = 3;
  const std::vector<float> flat(50, 0);
  EXPECT_EQ(draw(flat, parameters, {1, 2, 3}, 17), draw(flat, parameters, {}, 17));
  int differ = 0;
  for (uint32_t i = 0; i < 50; ++i) {
    SampleParameters other = parameters;
    other.seedHigh = 1;
    differ += draw(flat, parameters, {}, i) != draw(flat, other, {}, i);
  }
  EXPECT_GT(differ, 40);
}

TEST(Tree, MaskAndDepths) {
  //      0 ─ 1 ─ 3
  //        └ 2 ─ 4        5 is a second root
  const std::vector<int32_t> parents = {-1, 0, 0, 1, 2, -1};
  std::vector<int32_t> mask(12), depths(6);
  treeMask(parents, mask, depths);
  EXPECT_EQ(mask, (std::vector<int32_t>{1, 0, 3, 0, 5, 0, 11, 0, 21, 0, 32, 0}));
  EXPECT_EQ(depths, (std::vector<int32_t>{0, 1, 1, 2, 2, 0}));
}

TEST(Tree, MaskOfAChainOf64) {
  std::vector<int32_t> parents(64), mask(128), depths(64);
  for (int i = 0; i < 64; ++i)
    parents[i] = i - 1;
  treeMask(parents, mask, depths);
  EXPECT_EQ(mask[2 * 31], -1);
  EXPECT_EQ(mask[2 * 31 + 1], 0);
  EXPECT_EQ(mask[2 * 32 + 1], 1);
  EXPECT_EQ(mask[126], -1);
  EXPECT_EQ(mask[127], -1);
  EXPECT_EQ(depths[63], 63);
}

TEST(Tree, GreedyWalk) {
  const std::vector<int32_t> tokens = {5, 1, 2, 0}, parents = {-1, 0, 0, 2};
  // Node 0 wants 2 (node 2), node 2 wants 0 (node 3), node 3 wants 1.
  const std::vector<float> logits = {0,      1, 9, /**/ 9, 0, 0,
                                     /**/ 3, 1, 1, /**/ 0, 2, 1};
  auto verdict = verifyTree<float>(logits, 3, tokens, parents, {}, {}, 10);
  EXPECT_EQ(verdict.accepted, (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(verdict.bonus, 1);
}

TEST(Tree, SampledWalkEqualsPlainSampling) {
  SampleParameters parameters;
  parameters.temperature = 1, parameters.seedLow = 5, parameters.repeatPenalty = 1.3f, parameters.repeatLastN = 4;
  const std::vector<int32_t> history = {3, 1};
  // A chain whose logits depend on the node alone: plain sampling of the same
  // rows, one position after another.
  const std::vector<float> rows = {1, 0, 2, .5f, /**/ 0, 0, 0, 0, /**/ 2, 2, 1, 1};
  std::vector<int32_t> plain = history, tokens = {2};
  plain.push_back(2);
  for (uint32_t i = 0; i < 3; ++i)
    plain.push_back(draw({rows.begin() + 4 * i, rows.begin() + 4 * i + 4}, parameters, plain, 3 + i));
  tokens.push_back(plain[3]);
  tokens.push_back(plain[4]);
  auto verdict = verifyTree<float>(rows, 4, tokens, std::vector<int32_t>{-1, 0, 1}, parameters, history, 2);
  EXPECT_EQ(verdict.accepted, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(verdict.bonus, plain[5]);
}
