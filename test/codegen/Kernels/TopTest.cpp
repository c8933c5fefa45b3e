// What drafts say, and the rule by which drawn guesses are kept.
#include "StepState.h"
#include "codegen/Kernels/Sample.h"
#include "codegen/Kernels/Top.h"
#include "codegen/Kernels/TreeTable.h"
#include "runtime/Format/Guesses.h"

#include <algorithm>
#include <cmath>

namespace mlir::llm::test {
namespace {

using namespace sprig::format;

uint32_t bitsOf(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  return bits;
}
float numberOf(uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, 4);
  return number;
}

TEST(Top, TheLikeliestOfEachRow) {
  SKIP_WITHOUT_DEVICE();
  Random random(5);
  struct {
    uint32_t vocabulary;
    bool tree;
  } cases[] = {{7, false}, {1000, true}, {2500, false}};
  for (auto [vocabulary, tree] : cases) {
    const uint32_t rows = tree ? 3 : 1;
    TopSpec spec;
    spec.vocabulary = vocabulary;
    spec.tokens = vocabulary > 7 ? vocabulary - 3 : 0;
    spec.tree = tree;
    std::vector<float> logits = random.numbers(rows * vocabulary);
    // Steps of a quarter, so that some are equal; and one is no number.
    for (float &z : logits)
      z = std::floor(z * 32) / 4;
    if (vocabulary == 1000)
      logits[17] = NAN;
    for (const TargetProfile *target :
         {&deviceProfile(), &profile("generic")}) {
      const CompiledKernel *kernel =
          compile("top", spec.toAttr(context()), *target);
      ASSERT_TRUE(kernel);
      std::vector<uint32_t> block = control(9, rows, 64);
      block[Steps] = kGuessRows + 6; // row 5
      std::vector<Bytes> buffers = {toBytes(logits), toBytes(block),
                                    Bytes(kGuessBytes, 0xee)};
      run(*kernel, buffers, rows);
      auto words = fromBytes<uint32_t>(buffers[2]);
      for (uint32_t r = 0; r < rows; ++r) {
        const float *z = logits.data() + r * vocabulary;
        std::vector<uint32_t> order;
        double sum = 0;
        for (uint32_t i = 0; i < spec.drawable(); ++i)
          if (z[i] == z[i])
            order.push_back(i), sum += std::exp(double(z[i]));
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
          return z[a] != z[b] ? z[a] > z[b] : a < b;
        });
        const uint32_t *row =
            words.data() + (tree ? r : 5) * kGuessWords;
        for (uint32_t g = 0; g < kGuesses; ++g) {
          if (g >= order.size()) {
            EXPECT_EQ(row[g], kNoGuess) << vocabulary;
            continue;
          }
          ASSERT_EQ(row[g], order[g])
              << g << " of row " << r << " of " << vocabulary << " on "
              << target->name;
          EXPECT_NEAR(numberOf(row[kGuesses + g]),
                      double(z[order[g]]) - std::log(sum), 1e-4);
        }
      }
      // Other rows stay.
      EXPECT_EQ(words[(tree ? rows : 6) * kGuessWords], 0xeeeeeeee);
    }
  }
}

// docs/sampling.md's noise once more.
uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x21f0aaad, x ^= x >> 15, x *= 0x735a2d97, x ^= x >> 15;
  return x;
}
double uniform(uint32_t low, uint32_t high, uint32_t position, uint32_t id) {
  uint32_t first = mix(low + 0x9e3779b9 * (position + 1));
  uint32_t second = mix(high ^ mix(first ^ 0x85ebca6b));
  uint32_t bits = mix(mix(id + first) ^ second);
  return double((bits >> 9) * 2 + 1) * 0x1p-24;
}

/// The multi-round rule over the whole of p and q, by the device's noise. 0 as
/// the second where a comparison is too close to say.
std::pair<uint32_t, double> byRounds(std::vector<double> p,
                                     std::vector<double> q,
                                     const std::vector<uint32_t> &children,
                                     uint32_t position, uint32_t low,
                                     uint32_t high) {
  double margin = 1;
  for (uint32_t c = 0; c < children.size(); ++c) {
    const uint32_t token = children[c];
    const double u = uniform(low, high, position, ~(c + 1));
    margin = std::min(margin, std::fabs(u * q[token] - p[token]));
    if (q[token] > 0 && u * q[token] < p[token])
      return {token, margin};
    double sum = 0, left = 0;
    for (size_t i = 0; i < p.size(); ++i)
      sum += p[i] = std::max(p[i] - q[i], 0.0);
    for (double &each : p)
      each /= sum;
    q[token] = 0;
    for (double each : q)
      left += each;
    for (double &each : q)
      each = left > 0 ? each / left : 0;
  }
  uint32_t best = 0;
  double most = -1e9, second = -1e9;
  for (uint32_t i = 0; i < p.size(); ++i) {
    if (p[i] <= 0)
      continue;
    const double noisy =
        std::log(p[i]) - std::log(-std::log(uniform(low, high, position, i)));
    if (noisy > most)
      second = most, most = noisy, best = i;
    else
      second = std::max(second, noisy);
  }
  return {best, std::min(margin, most - second)};
}

TEST(Sample, RoundsKeepAndDrawAsTheRuleSays) {
  SKIP_WITHOUT_DEVICE();
  Random random(8);
  constexpr uint32_t kVocabulary = 40, kBase = 11, kNodes = 8;
  SampleSpec spec;
  spec.vocabulary = kVocabulary, spec.capacity = 96;
  spec.tree = kMostNodes, spec.rounds = 1;
  TreeTableSpec table;
  table.width = kMostNodes;
  int compared = 0, kept = 0;
  for (int round = 0; round < 100; ++round) {
    const TargetProfile &target =
        round % 4 == 3 ? profile("generic") : deviceProfile();
    std::vector<float> logits = random.numbers(kNodes * kVocabulary);
    for (float &z : logits)
      z *= 4;
    const float temperature = random.among<float>({0.7f, 1, 1.5f});
    const uint32_t topK = random.among<uint32_t>({0, 3, 12});
    std::vector<uint32_t> block = control(kBase, kNodes, 96);
    const uint32_t low = random.bits(), high = random.bits();
    block[SeedLow] = low, block[SeedHigh] = high, block[TopK] = topK;
    block[Rounds] = 1;
    set(block, Temperature, temperature);
    // All are children of node 0.
    std::vector<uint32_t> history(96 + kMostNodes), guesses(
        kGuessBytes / 4, kNoGuess);
    const uint32_t children = 1 + random.below(4);
    for (uint32_t i = 0; i < kNodes; ++i) {
      const uint32_t parent = i == 0 ? kNoParent : i <= children ? 0 : i - 1;
      block[Parents + i / 4] |= parent << 8 * (i % 4);
    }
    // The draft knows some of the likely tokens, and others.
    std::vector<double> p(kVocabulary), q(kVocabulary);
    std::vector<uint32_t> order(kVocabulary);
    for (uint32_t i = 0; i < kVocabulary; ++i)
      order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
    double sum = 0;
    for (uint32_t i = 0; i < (topK ? topK : kVocabulary); ++i)
      sum += p[order[i]] =
          std::exp(double(logits[order[i]] - logits[order[0]]) / temperature);
    for (double &each : p)
      each /= sum;
    const uint32_t names = 4 + random.below(7);
    double drawnFrom = 0;
    for (uint32_t g = 0; g < names; ++g) {
      const uint32_t token = order[g * 3 % kVocabulary];
      guesses[g] = token;
      drawnFrom += q[token] = 0.05 + random.below(100) / 100.0;
    }
    for (uint32_t g = 0; g < kGuesses; ++g) {
      const float share = g < names ? float(q[guesses[g]] / drawnFrom) : 0;
      if (g < names)
        q[guesses[g]] = share;
      guesses[kGuesses + g] = bitsOf(share);
    }
    std::vector<uint32_t> tokens;
    for (uint32_t c = 0; c < children; ++c) {
      tokens.push_back(guesses[(c * 2 + random.below(2)) % names]);
      history[kBase + 1 + c] = tokens.back();
    }
    std::sort(tokens.begin(), tokens.end());
    if (std::unique(tokens.begin(), tokens.end()) != tokens.end())
      continue; // not without replacement
    tokens.assign(history.begin() + kBase + 1,
                  history.begin() + kBase + 1 + children);
    const CompiledKernel *tree = compile("tree_table", table.toAttr(context()),
                                         target),
                         *sample = compile("sample", spec.toAttr(context()),
                                           target);
    ASSERT_TRUE(tree && sample);
    std::vector<Bytes> first = {toBytes(block),
                                Bytes(TreeTableSpec::bytes(kMostNodes))};
    run(*tree, first, kNodes);
    std::vector<Bytes> buffers = {toBytes(logits), first[0], toBytes(history),
                                  first[1], Bytes(4 * kMostNodes),
                                  toBytes(guesses)};
    run(*sample, buffers, kNodes);
    auto [token, margin] =
        byRounds(p, q, tokens, kBase + 1, low, high);
    if (margin < 1e-4)
      continue;
    ++compared;
    kept += std::count(tokens.begin(), tokens.end(), token) > 0;
    EXPECT_EQ(fromBytes<uint32_t>(buffers[4])[0], token)
        << "round " << round << ", " << children << " children, top-k " << topK;
  }
  EXPECT_GT(compared, 60);
  EXPECT_GT(kept, 10);
  EXPECT_LT(kept, compared);
}

} // namespace
} // namespace mlir::llm::test
