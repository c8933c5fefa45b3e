// Each rule on a toy vocabulary, 200,000 draws: χ² of the first token against
// the target, and of the first two together.
#include "runtime/Speculation/Acceptance.h"
#include "runtime/Speculation/DrawnTree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace sprig;

namespace {

constexpr size_t kTokens = 6;
constexpr int kDraws = 200000;
using Row = std::array<double, kTokens>;

class Random final : public Uniform {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  double next() override { return double(engine() >> 11) * 0x1p-53; }

private:
  std::mt19937_64 engine;
};

Row softmax(const Row &logits, double temperature) {
  Row out;
  double sum = 0;
  for (size_t i = 0; i < kTokens; ++i)
    sum += out[i] = std::exp(logits[i] / temperature);
  for (double &p : out)
    p /= sum;
  return out;
}

/// What two models say after nothing, and after each first token.
struct Models {
  Row target[kTokens + 1], draft[kTokens + 1];

  explicit Models(double temperature) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal(0, 1.2);
    for (size_t after = 0; after <= kTokens; ++after) {
      Row logits, guessed;
      for (size_t i = 0; i < kTokens; ++i) {
        logits[i] = normal(random);
        guessed[i] = 0.6 * logits[i] + 0.8 * normal(random);
      }
      target[after] = softmax(logits, temperature);
      draft[after] = softmax(guessed, temperature);
    }
  }
};

/// The children that a draft draws.
std::vector<uint32_t> drawChildren(Row draft, size_t count, Draws draws,
                                   Uniform &uniform) {
  std::vector<uint32_t> children;
  for (size_t i = 0; i < count; ++i) {
    children.push_back(drawFrom(draft.data(), kTokens, uniform));
    if (draws == Draws::Distinct)
      draft[children.back()] = 0;
  }
  return children;
}

/// One step from the state `after`: the token and whether it was a child.
using Rule = std::function<Verdict(const Models &, size_t after, Uniform &)>;

Verdict byRounds(const Models &models, size_t after, Draws draws,
                 Uniform &uniform) {
  Row target = models.target[after], draft = models.draft[after];
  std::vector<uint32_t> children = drawChildren(draft, 3, draws, uniform);
  return acceptSampled(target.data(), draft.data(), kTokens, children.data(),
                       children.size(), draws, uniform);
}

/// What a draft says that names four tokens of six, and the weight of each that
/// a drawn tree tells the device of its root.
GuessRow rowOf(const Row &draft) {
  std::array<uint32_t, kTokens> order;
  for (uint32_t i = 0; i < kTokens; ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return draft[a] > draft[b]; });
  GuessRow row;
  for (size_t i = 0; i < 4; ++i)
    row.add(order[i], float(draft[order[i]]));
  return row;
}
Row weightsOf(const DrawnTree &tree) {
  Row weights{};
  for (uint32_t i = 0; i < format::kGuesses; ++i)
    if (tree.rows()[i] != format::kNoGuess) {
      float weight;
      std::memcpy(&weight, tree.rows() + format::kGuesses + i, sizeof(weight));
      weights[tree.rows()[i]] = double(weight);
    }
  return weights;
}

/// The path of the device: a tree is drawn from the likeliest alone, by noise
/// of its own, and its rows are what the rule is told.
Verdict byDrawnTree(const Models &models, size_t after, uint32_t branches,
                    Uniform &uniform) {
  static uint64_t place = 0;
  PlacedUniform draws(17, ++place);
  DrawnTree tree;
  tree.reset(0);
  EXPECT_TRUE(tree.grow(rowOf(models.draft[after]), 1, branches, draws));
  Row target = models.target[after], weights = weightsOf(tree);
  return acceptSampled(target.data(), weights.data(), kTokens,
                       tree.cut().tokens.data() + 1, tree.cut().count - 1,
                       Draws::Distinct, uniform);
}

/// The fixed tree: the three likeliest guesses, one draw, the child that has it.
Verdict byDraw(const Models &models, size_t after, Uniform &uniform) {
  const uint32_t token = drawFrom(models.target[after].data(), kTokens, uniform);
  size_t likelier = 0;
  for (double q : models.draft[after])
    likelier += q > models.draft[after][token];
  return {token, likelier < 3 ? int32_t(likelier) : -1};
}

Verdict byType(const Models &models, size_t after, Uniform &uniform) {
  std::vector<uint32_t> children =
      drawChildren(models.draft[after], 3, Draws::Distinct, uniform);
  return acceptTypical(models.target[after].data(), kTokens, children.data(),
                       children.size(), 0.3, 0.3, uniform);
}

struct Statistics {
  double first = 0, joint = 0; ///< χ²
  double kept = 0;             ///< share of steps that kept a child
};

/// Two tokens a draw: where the first was a child its own children come next;
/// otherwise the next step begins, which draws from the target.
Statistics measure(const Models &models, const Rule &rule, uint64_t seed) {
  Random uniform(seed);
  std::array<double, kTokens> first{};
  std::array<std::array<double, kTokens>, kTokens> both{};
  double kept = 0;
  for (int i = 0; i < kDraws; ++i) {
    Verdict one = rule(models, 0, uniform);
    kept += one.child >= 0;
    const uint32_t two =
        one.child >= 0
            ? rule(models, one.token + 1, uniform).token
            : drawFrom(models.target[one.token + 1].data(), kTokens, uniform);
    ++first[one.token];
    ++both[one.token][two];
  }
  Statistics out;
  out.kept = kept / kDraws;
  auto add = [](double &sum, double seen, double probability) {
    const double expected = probability * kDraws;
    sum += (seen - expected) * (seen - expected) / expected;
  };
  for (size_t i = 0; i < kTokens; ++i) {
    add(out.first, first[i], models.target[0][i]);
    for (size_t j = 0; j < kTokens; ++j)
      add(out.joint, both[i][j],
          models.target[0][i] * models.target[i + 1][j]);
  }
  return out;
}

/// χ² that one run in 10,000 exceeds (Wilson and Hilferty).
double critical(double freedom) {
  const double z = 3.719, a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + z * std::sqrt(a), 3);
}

const double kFirst = critical(kTokens - 1),
             kJoint = critical(kTokens * kTokens - 1);

TEST(AcceptanceTest, LosslessRulesKeepTheDistribution) {
  const struct {
    const char *name;
    Rule rule;
  } rules[] = {
      {"fixed trees", byDraw},
      {"rounds, with replacement",
       [](const Models &m, size_t after, Uniform &u) {
         return byRounds(m, after, Draws::Independent, u);
       }},
      {"rounds, without",
       [](const Models &m, size_t after, Uniform &u) {
         return byRounds(m, after, Draws::Distinct, u);
       }},
      {"a drawn chain",
       [](const Models &m, size_t after, Uniform &u) {
         return byDrawnTree(m, after, 1, u);
       }},
      {"a drawn tree", [](const Models &m, size_t after, Uniform &u) {
         return byDrawnTree(m, after, 3, u);
       }}};
  uint64_t seed = 1;
  for (const auto &[name, rule] : rules)
    for (double temperature : {0.7, 1.0, 1.5}) {
      const Statistics seen = measure(Models(temperature), rule, seed++);
      EXPECT_LT(seen.first, kFirst) << name << " at " << temperature;
      EXPECT_LT(seen.joint, kJoint) << name << " at " << temperature;
      EXPECT_GT(seen.kept, 0.5) << name << " at " << temperature;
    }
}

TEST(AcceptanceTest, DrawnTreesGrowByTheirFirstChildren) {
  Models cold(0.7), plain(1);
  PlacedUniform uniform(1, 2);
  DrawnTree tree;
  tree.reset(9);
  ASSERT_TRUE(tree.grow(rowOf(plain.draft[0]), 0.7f, 2, uniform));
  const uint32_t first = tree.last();
  ASSERT_TRUE(tree.grow(rowOf(plain.draft[1]), 0.7f, 2, uniform));
  const DraftTree::Cut &cut = tree.cut();
  ASSERT_EQ(cut.count, 5u);
  EXPECT_EQ(std::vector(cut.parents.begin(), cut.parents.begin() + 5),
            (std::vector<int32_t>{-1, 0, 0, 1, 1}));
  EXPECT_EQ(cut.tokens[0], 9u);
  EXPECT_EQ(cut.tokens[1], first);
  EXPECT_NE(cut.tokens[1], cut.tokens[2]);
  EXPECT_EQ(cut.tokens[3], tree.last());
  // The weights are those at the temperature, of the tokens that were named.
  const Row weights = weightsOf(tree);
  double named = 0, sum = 0;
  for (size_t i = 0; i < kTokens; ++i) {
    named += weights[i] > 0 ? cold.draft[0][i] : 0;
    sum += weights[i];
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  for (size_t i = 0; i < kTokens; ++i)
    if (weights[i] > 0)
      EXPECT_NEAR(weights[i], cold.draft[0][i] / named, 1e-5);
  // A row that says nothing ends it; so does a full tree.
  EXPECT_FALSE(tree.grow(GuessRow(), 1, 2, uniform));
  for (int i = 0; i < 40; ++i)
    tree.grow(rowOf(plain.draft[2]), 1, 2, uniform);
  EXPECT_EQ(tree.cut().count, format::kMostNodes);
}

TEST(AcceptanceTest, TypicalAcceptanceDoesNot) {
  // It is named lossy, and the test would see if a rule above were.
  for (double temperature : {0.7, 1.0, 1.5}) {
    const Statistics seen = measure(Models(temperature), byType, 7);
    EXPECT_GT(seen.first, 10 * kFirst) << temperature;
    EXPECT_GT(seen.joint, 10 * kJoint) << temperature;
  }
}

TEST(AcceptanceTest, TypicalMeansLikelyOrAsLikelyAsAnything) {
  Random uniform(1);
  const Row sharp = {0.9, 0.02, 0.02, 0.02, 0.02, 0.02};
  const Row flat = {0.15, 0.17, 0.17, 0.17, 0.17, 0.17};
  const uint32_t children[] = {1, 0};
  // exp(-entropy) is 0.6 and 0.17.
  EXPECT_EQ(acceptTypical(sharp.data(), kTokens, children, 2, 0.3, 0.3, uniform)
                .child,
            1);
  EXPECT_EQ(
      acceptTypical(flat.data(), kTokens, children, 2, 0.3, 0.3, uniform).child,
      0);
}

TEST(AcceptanceTest, EndsOfTheRule) {
  Random uniform(3);
  // Equal distributions keep the first child; disjoint ones keep none.
  Row same = {0.5, 0.5, 0, 0, 0, 0}, copy = same;
  uint32_t children[] = {1, 0};
  EXPECT_EQ(acceptSampled(same.data(), copy.data(), kTokens, children, 2,
                          Draws::Distinct, uniform)
                .child,
            0);
  Row target = {0, 0, 1, 0, 0, 0}, draft = {0.5, 0.5, 0, 0, 0, 0};
  Verdict none = acceptSampled(target.data(), draft.data(), kTokens, children,
                               2, Draws::Distinct, uniform);
  EXPECT_EQ(none.child, -1);
  EXPECT_EQ(none.token, 2u);
  // No children: the target alone.
  Row one = {0, 0, 0, 1, 0, 0};
  EXPECT_EQ(acceptSampled(one.data(), draft.data(), kTokens, nullptr, 0,
                          Draws::Independent, uniform)
                .token,
            3u);
}

} // namespace
