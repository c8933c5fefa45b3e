// Trees that grow of what drafts of a package say, on a generated model: by all
// rules the tokens are those of plain decoding, and where guesses are drawn they
// are distributed like them.
#include "lib/Weights/SafetensorsWriter.h"
#include "runtime/sprig.h"
#include "test/tools/SteadyLoop.h"
#include "test/tools/TreeRows.h"
#include "tools/Compression.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

constexpr int64_t kWidth = 64, kHeads = 3;

void writeHeads(const std::string &path, bool ridge) {
  auto writer = cantFail(SafetensorsWriter::create(path));
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  auto add = [&](const std::string &key, std::vector<int64_t> shape,
                 float scale) {
    std::vector<float> numbers(
        size_t(shape[0] * (shape.size() > 1 ? shape[1] : 1)));
    for (float &number : numbers)
      number = scale * normal(random);
    cantFail(writer->add(key, quant::Format::F32, shape,
                         std::as_bytes(std::span(numbers))));
  };
  if (ridge) {
    add("ridge.hidden.weight", {kWidth, kWidth}, 0.1f);
    add("ridge.embedding.weight", {kWidth, kWidth}, 2);
    add("ridge.bias", {kWidth}, 0.1f);
  }
  for (int64_t i = 0; i < kHeads && !ridge; ++i) {
    add(std::to_string(i) + ".0.linear.weight", {kWidth, kWidth}, 0.3f);
    add(std::to_string(i) + ".0.linear.bias", {kWidth}, 0.3f);
  }
  cantFail(writer->finish());
}

/// `self` is the model with its weights in four bits, for it to be wrong at
/// times.
class GrownTreesTest : public mlir::llm::testing::SpeculationTest {
protected:
  explicit GrownTreesTest(bool withRidge = false) : ridge(withRidge) {}

  void prepare(CompileOptions &options) override {
    writeHeads(file("heads.safetensors"), ridge);
    options.passPipeline =
        "builtin.module(" + cantFail(draftPass("bits:4", false)) + "," +
        cantFail(draftPass("heads:" + file("heads.safetensors"), false)) +
        ",llm-default-pipeline)";
  }

  const format::Draft &draft(std::string_view name) {
    return *findDraft(session->model().metadata(), name);
  }

  std::unique_ptr<Speculator> with(std::vector<std::string> drafts,
                                   Growth growth, bool drawn = false) {
    SpeculationOptions options;
    options.drafts = std::move(drafts);
    options.growth = growth;
    options.drawn = drawn;
    auto made = Speculator::create(*session, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(*made) : nullptr;
  }

  /// Feeds the prompt and samples one token, which is not in the cache then.
  uint32_t begin() {
    EXPECT_TRUE(session->truncate(0).ok());
    EXPECT_TRUE(session->start(prompt.data(), prompt.size(), 1).ok());
    return *session->next();
  }

  void loopsAllocateNothing(
      const std::vector<std::vector<std::string>> &lists) {
    open(/*validated=*/false, /*poisoned=*/false);
    if (IsSkipped() || HasFatalFailure())
      return;
    SpeculationOptions options;
    for (const auto &drafts : lists) {
      options.drafts = drafts;
      for (Growth growth : {Growth::Comb, Growth::Clover, Growth::Eagle}) {
        options.growth = growth;
        mlir::llm::testing::expectSteadyLoop(*session, prompt, options,
                                             drafts[0] != "auto");
      }
    }
    options.drafts = {"heads"};
    options.growth = Growth::Comb;
    options.drawn = true;
    mlir::llm::testing::expectSteadyLoop(*session, prompt, options);
  }

  void allRulesGiveTheTokensOfPlainDecoding(
      const std::vector<std::vector<std::string>> &lists) {
    Sampling greedy, sampled;
    sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
    sampled.repeatPenalty = 1.1f, sampled.repeatLastN = 16;
    GenerationOptions options;
    options.most = 50;
    uint64_t trees = 0, accepted = 0, drafted = 0;
    for (const Sampling &sampling : {greedy, sampled}) {
      ASSERT_TRUE(session->setSampling(sampling).ok());
      const Answer plain = generate(options, nullptr);
      for (const auto &drafts : lists)
        for (Growth growth : {Growth::Comb, Growth::Clover, Growth::Eagle}) {
          auto speculator = with(drafts, growth);
          EXPECT_EQ(generate(options, speculator.get()), plain)
              << drafts.back() << " by rule " << int(growth) << " at "
              << sampling.temperature;
          trees += speculator->counts().trees;
          accepted += speculator->counts().accepted;
          drafted += speculator->counts().drafted;
        }
    }
    EXPECT_GT(trees, 0u);
    EXPECT_GT(accepted, 0u);
    EXPECT_LT(accepted, drafted);
  }

  // Parts of one test, since compiling takes longer than they do.
  void rowsAreSortedAndSumToLessThanOne();
  void theDraftSaysAtANodeWhatItSaysBehindItsPath();
  void treesThatDoNotFitAreNamed();
  void theCInterfaceHasTheRules();

  bool ridge;
};

class RidgeTreesTest : public GrownTreesTest {
protected:
  RidgeTreesTest() : GrownTreesTest(true) {}
};

TEST_F(GrownTreesTest, TokensAreThoseOfPlainDecoding) {
  allRulesGiveTheTokensOfPlainDecoding(
      {{"self"}, {"heads"}, {"ngram", "self", "heads"}});
}

TEST_F(RidgeTreesTest, TokensAreThoseOfPlainDecoding) {
  allRulesGiveTheTokensOfPlainDecoding({{"heads"}, {"ngram", "heads"}});
}

TEST_F(RidgeTreesTest, HeadsGoOnFromTheirGuessAtTheParent) {
  EXPECT_EQ(session->largestGuessTree(draft("heads")), 16u);
  begin();
  mlir::llm::testing::expectRowsOfPaths(*session, draft("heads"));
  mlir::llm::testing::expectBushes(*session, draft("heads"));
  loopsAllocateNothing({{"heads"}, {"ngram", "heads"}});
}

void GrownTreesTest::rowsAreSortedAndSumToLessThanOne() {
  begin();
  uint32_t tokens[3];
  ASSERT_EQ(*session->guess(draft("heads"), 3, tokens), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    GuessRow row;
    ASSERT_TRUE(session->guessRow(i, row).ok());
    ASSERT_EQ(row.count, format::kGuesses);
    // Greedy, so the token drawn is the first.
    EXPECT_EQ(row.tokens[0], tokens[i]);
    float sum = row.probabilities[0];
    for (uint32_t g = 1; g < row.count; ++g) {
      EXPECT_LE(row.probabilities[g], row.probabilities[g - 1]);
      sum += row.probabilities[g];
    }
    EXPECT_GT(row.probabilities[9], 0);
    EXPECT_LE(sum, 1.001f);
  }
}

void GrownTreesTest::theDraftSaysAtANodeWhatItSaysBehindItsPath() {
  EXPECT_EQ(session->largestGuessTree(draft("self")), 16u);
  EXPECT_EQ(session->largestGuessTree(draft("heads")), 0u);
  begin();
  mlir::llm::testing::expectRowsOfPaths(*session, draft("self"));
}

void GrownTreesTest::treesThatDoNotFitAreNamed() {
  const uint32_t root = begin();
  auto message = [&](std::string_view name, std::vector<uint32_t> tokens,
                     std::vector<int32_t> parents) {
    Status status = session->guessTree(draft(name), tokens.data(),
                                       parents.data(), uint32_t(tokens.size()));
    return status.ok() ? std::string() : status.message();
  };
  EXPECT_EQ(message("self", {root, 1}, {-1, 0}), "");
  EXPECT_NE(message("self", {root, 1}, {-1, 1}).find("parent of node 1"),
            std::string::npos);
  EXPECT_NE(message("heads", {root, 1}, {-1, 0}).find("program for trees of 2"),
            std::string::npos);
  EXPECT_NE(message("self", std::vector<uint32_t>(17, root),
                    std::vector<int32_t>(17, 0))
                .find("1 to 16 nodes"),
            std::string::npos);
  GuessRow row;
  EXPECT_NE(session->guessNext(draft("heads"), 3, 1, row)
                .message()
                .find("guesses below 3"),
            std::string::npos);
  SpeculationOptions options;
  options.drawn = true;
  options.drafts = {"ngram"};
  EXPECT_NE(Speculator::create(*session, options)
                .status()
                .message()
                .find("to draw guesses from, but got 'ngram'"),
            std::string::npos);
  options.drafts = {"self", "heads"};
  EXPECT_NE(Speculator::create(*session, options)
                .status()
                .message()
                .find("but got 'self' and others"),
            std::string::npos);
}

void GrownTreesTest::theCInterfaceHasTheRules() {
  const mlir::llm::testing::HeldSession opened(package());
  ASSERT_NE(opened.session, nullptr);
  sprig_session *held = opened.session;
  sprig_speculation speculation;
  sprig_speculation_init(&speculation);
  speculation.drafts = "self";
  for (const char *rule : {"comb", "clover", "eagle"}) {
    speculation.tree_rule = rule;
    EXPECT_EQ(sprig_session_set_speculation(held, &speculation), SPRIG_OK);
  }
  speculation.tree_rule = "oak";
  EXPECT_EQ(sprig_session_set_speculation(held, &speculation),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sprig_last_error()).find("eagle, but got 'oak'"),
            std::string::npos);
  speculation.tree_rule = nullptr;
  speculation.draft_sampling = 1;
  EXPECT_EQ(sprig_session_set_speculation(held, &speculation), SPRIG_OK);
}

TEST_F(GrownTreesTest, DraftsSayWhatMayFollow) {
  rowsAreSortedAndSumToLessThanOne();
  theDraftSaysAtANodeWhatItSaysBehindItsPath();
  treesThatDoNotFitAreNamed();
  theCInterfaceHasTheRules();
  loopsAllocateNothing({{"heads"}, {"ngram", "self", "heads"}, {"auto"}});
}

/// χ² that one run in 10,000 exceeds (Wilson and Hilferty).
double critical(double freedom) {
  const double z = 3.719, a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + z * std::sqrt(a), 3);
}

class DrawnTreesTest : public GrownTreesTest {
protected:
  using Pair = std::pair<uint32_t, uint32_t>;

  /// The distribution behind `path`: softmax over the likeliest `topK`.
  std::map<uint32_t, double> distribution(std::vector<uint32_t> path,
                                          const Sampling &sampling) {
    EXPECT_TRUE(session->truncate(0).ok());
    path.insert(path.begin(), prompt.begin(), prompt.end());
    std::vector<float> logits(session->model().metadata().model()->vocabulary());
    EXPECT_TRUE(
        session->evaluateLast(path.data(), path.size(), logits.data()).ok());
    std::vector<std::pair<double, uint32_t>> order;
    for (uint32_t i = 0; i < logits.size(); ++i)
      order.push_back({-logits[i], i});
    std::sort(order.begin(), order.end());
    std::map<uint32_t, double> out;
    double sum = 0;
    for (uint32_t i = 0; i < sampling.topK; ++i)
      sum += out[order[i].second] =
          std::exp((order[0].first - order[i].first) / sampling.temperature);
    for (auto &[token, probability] : out)
      probability /= sum;
    return out;
  }

  /// The second and the third token behind the prompt are those of a tree.
  void keepsTheDistribution(const std::string &name, float temperature) {
    Sampling sampling;
    sampling.temperature = temperature, sampling.topK = 4;
    std::map<Pair, double> right, seen;
    for (auto [first, p] : distribution({}, sampling))
      for (auto [second, q] : distribution({first}, sampling))
        for (auto [third, r] : distribution({first, second}, sampling))
          right[{second, third}] += p * q * r;
    constexpr int kDraws = 1600;
    auto speculator = with({name}, Growth::Comb, /*drawn=*/true);
    uint64_t drafted = 0, accepted = 0;
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->append(prompt.data(), prompt.size() - 1).ok());
    for (int i = 0; i < kDraws; ++i) {
      sampling.seed = uint64_t(i) + 1;
      ASSERT_TRUE(session->setSampling(sampling).ok());
      ASSERT_TRUE(session->truncate(prompt.size() - 1).ok());
      ASSERT_TRUE(speculator->start(&prompt.back(), 1, 6).ok());
      uint32_t tokens[3];
      for (uint32_t &token : tokens)
        token = *speculator->next();
      ++seen[{tokens[1], tokens[2]}];
      drafted += speculator->counts().drafted;
      accepted += speculator->counts().accepted;
    }
    EXPECT_GT(drafted, uint64_t(kDraws) / 2) << name;
    EXPECT_GT(accepted, 0u) << name;
    double square = 0, freedom = -1, restSeen = kDraws, restRight = kDraws;
    for (auto [pair, probability] : right) {
      const double expected = kDraws * probability;
      if (expected < 8)
        continue;
      square += (seen[pair] - expected) * (seen[pair] - expected) / expected;
      ++freedom;
      restSeen -= seen[pair], restRight -= expected;
    }
    if (restRight >= 8) {
      square += (restSeen - restRight) * (restSeen - restRight) / restRight;
      ++freedom;
    }
    for (const auto &[pair, count] : seen)
      EXPECT_TRUE(right.count(pair)) << pair.first << ", " << pair.second;
    EXPECT_GT(freedom, 3);
    EXPECT_LT(square, critical(freedom)) << name << " at " << temperature;
  }
};

TEST_F(DrawnTreesTest, GuessesOfTheDraftKeepTheDistribution) {
  open(/*validated=*/false, /*poisoned=*/true);
  if (IsSkipped() || HasFatalFailure())
    return;
  keepsTheDistribution("self", 0.7f);
  keepsTheDistribution("heads", 1.5f);
  // Greedy, the tokens stay those of plain decoding.
  ASSERT_TRUE(session->setSampling(Sampling()).ok());
  GenerationOptions options;
  options.most = 40;
  const Answer plain = generate(options, nullptr);
  auto speculator = with({"self"}, Growth::Comb, /*drawn=*/true);
  EXPECT_EQ(generate(options, speculator.get()), plain);
  EXPECT_GT(speculator->counts().trees, 0u);
  // With a temperature guesses are drawn, and some stay.
  Sampling sampling;
  sampling.temperature = 0.9f;
  ASSERT_TRUE(session->setSampling(sampling).ok());
  EXPECT_EQ(generate(options, speculator.get()).tokens.size(), 40u);
  EXPECT_GT(speculator->counts().accepted, 0u);
}

} // namespace
