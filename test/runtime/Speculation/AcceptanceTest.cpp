// Each rule on a toy vocabulary, 200,000 draws: χ² of the first token against
// the target, and of the first two together.
#include "runtime/Speculation/Acceptance.h"

#include <array>
#include <cmath>
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
      {"rounds, without", [](const Models &m, size_t after, Uniform &u) {
         return byRounds(m, after, Draws::Distinct, u);
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
