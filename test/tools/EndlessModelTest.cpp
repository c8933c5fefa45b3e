// Generation past the end of the context, on generated models: the device does
// what the reference evaluator does with the same evictions, whichever way the
// tokens came.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "runtime/sprig.h"
#include "test/tools/SpeculationTest.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <cstring>
#include <fstream>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

constexpr int32_t kContext = 64, kSinks = 4, kWindow = 20;

/// Logits after each token by the reference, which makes room at slot kContext.
std::vector<double> evaluate(const std::string &gguf,
                             ArrayRef<uint32_t> tokens,
                             const std::string &passes) {
  MLIRContext context;
  ImportOptions import;
  import.capacity = kContext;
  auto module = importModel(&context, gguf, import);
  if (!module) {
    ADD_FAILURE() << ::llvm::toString(module.takeError());
    return {};
  }
  PassManager manager(&context);
  EXPECT_TRUE(succeeded(parsePassPipeline(passes + "llm-make-evict", manager)) &&
              succeeded(manager.run(**module)));
  using reference::Tensor;
  reference::Options options;
  options.roundCaches = true;
  auto evaluator = reference::Evaluator::create(**module, "", options);
  std::vector<double> logits;
  int32_t slot = 0;
  for (uint32_t token : tokens) {
    if (slot == kContext) {
      const int32_t drop = kContext - kSinks - kWindow;
      EXPECT_TRUE(succeeded(evaluator->run(
          "evict", {Tensor::ids({kSinks}), Tensor::ids({drop})})));
      slot -= drop;
    }
    auto row = evaluator->run("forward",
                              {Tensor::ids({int32_t(token)}),
                               Tensor::ids({slot++}), Tensor::ids({0})});
    EXPECT_TRUE(succeeded(row));
    if (failed(row))
      return {};
    const std::vector<double> numbers = row->front().toDoubles();
    logits.insert(logits.end(), numbers.begin(), numbers.end());
  }
  return logits;
}

class EndlessTest : public mlir::llm::testing::SpeculationTest {
protected:
  void prepare(CompileOptions &options) override {
    SpeculationTest::prepare(options);
    options.context = kContext;
    options.endless = true;
  }
  void SetUp() override {
    SpeculationTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    const Endless endless{kSinks, kWindow};
    ASSERT_TRUE(session->setEndless(&endless).ok());
  }
  std::vector<uint32_t> someTokens(size_t count) {
    std::vector<uint32_t> tokens(count);
    for (uint32_t &token : tokens)
      token = uint32_t(random() % 280);
    return tokens;
  }
  std::mt19937 random{3};
};

class EndlessCachesTest : public EndlessTest,
                          public ::testing::WithParamInterface<
                              std::tuple<const char *, const char *, double>> {
protected:
  /// What the caches hold, as a pass.
  std::string caches() const { return std::get<0>(GetParam()); }
  void prepare(CompileOptions &options) override {
    EndlessTest::prepare(options);
    options.targets = {std::get<1>(GetParam())};
    options.passPipeline =
        "builtin.module(" + caches() + "llm-default-pipeline)";
  }
};

TEST_P(EndlessCachesTest, TheDeviceDoesWhatTheReferenceDoes) {
  const std::vector<uint32_t> tokens = someTokens(130);
  const std::vector<double> right =
      evaluate(file("tiny.gguf"), tokens, caches());
  ASSERT_EQ(right.size(), tokens.size() * vocabulary);
  double largest = 0;
  for (double logit : right)
    largest = std::max(largest, std::fabs(logit));
  std::vector<float> first;
  for (size_t piece : {1, 7, 130}) {
    const std::vector<float> got = logitsOf(tokens, piece);
    EXPECT_EQ(session->evicted(), 80u);
    EXPECT_EQ(session->slots(), 50u);
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << "token " << i / vocabulary;
      worst = std::max(worst, std::fabs(double(got[i]) - right[i]));
    }
    EXPECT_LE(worst, std::get<2>(GetParam()) * (1 + largest));
    if (first.empty())
      first = got;
    EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * 4), 0)
        << "in pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Caches, EndlessCachesTest,
    ::testing::Values(
        std::tuple("", "lavapipe", 1e-3), std::tuple("", "generic", 1e-3),
        std::tuple("llm-quantize-kv{bits=8},", "lavapipe", 8e-3),
        std::tuple("llm-quantize-kv{attention=8},", "generic", 2e-2),
        std::tuple("llm-quantize-kv{bits=4},", "lavapipe", 8e-2)));

TEST_F(EndlessTest, GuessesChangeNoToken) {
  Sampling greedy, sampled;
  sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
  sampled.repeatPenalty = 1.1f, sampled.repeatLastN = 16;
  GenerationOptions options;
  options.most = 200;
  uint64_t trees = 0;
  for (const Sampling &sampling : {greedy, sampled}) {
    ASSERT_TRUE(session->setSampling(sampling).ok());
    const Answer plain = generate(options, nullptr);
    EXPECT_EQ(plain.tokens.size(), 200u);
    EXPECT_EQ(plain.finish, Finish::Length);
    EXPECT_GT(session->evicted(), 100u);
    EXPECT_EQ(session->tokens().size(), prompt.size() + 200);
    for (const char *name : {"ngram", "self", "auto"}) {
      auto with = speculator(name);
      EXPECT_EQ(generate(options, with.get()), plain) << name;
      trees += with->counts().trees;
    }
  }
  EXPECT_GT(trees, 0u);
}

TEST_F(EndlessTest, NoiseDoesNotStartAgain) {
  // A flat distribution: the same slots after an eviction draw other tokens.
  Sampling flat;
  flat.temperature = 100, flat.seed = 9;
  ASSERT_TRUE(session->setSampling(flat).ok());
  GenerationOptions options;
  options.most = 120;
  const std::vector<uint32_t> tokens = generate(options, nullptr).tokens;
  int same = 0;
  for (size_t i = 40; i + 40 < tokens.size(); ++i)
    same += tokens[i] == tokens[i + 40];
  EXPECT_LT(same, 10);
}

TEST_F(EndlessTest, SessionsGoOnAfterAnEviction) {
  GenerationOptions options;
  options.most = 90;
  const std::vector<uint32_t> all = generate(options, nullptr).tokens;
  options.most = 70;
  generate(options, nullptr);
  const uint32_t gone = session->evicted();
  ASSERT_GT(gone, 0u);
  ASSERT_TRUE(session->save(file("a.session"), "note").ok());
  const std::vector<uint32_t> sequence = session->tokens();
  ASSERT_TRUE(session->truncate(0).ok());
  EXPECT_EQ(session->evicted(), 0u);
  std::string note;
  Status status = session->load(file("a.session"), note);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(note, "note");
  EXPECT_EQ(session->evicted(), gone);
  EXPECT_EQ(session->tokens(), sequence);
  ASSERT_TRUE(session->start(nullptr, 0, 20).ok());
  for (size_t i = 70; i < 90; ++i)
    EXPECT_EQ(*session->next(), all[i]) << i;
  // A prompt that goes on from all of it costs only what is new.
  ASSERT_TRUE(session->stop().ok());
  prompt = session->tokens();
  prompt.push_back(7);
  EXPECT_EQ(session->match(prompt.data(), prompt.size()), prompt.size() - 1);
  options.most = 3;
  goOn(options, nullptr);
  EXPECT_GE(session->evicted(), gone);

  // Damaged, or with tokens that cannot have gone: refused, and nothing changes.
  auto bytes = ::llvm::MemoryBuffer::getFile(file("a.session"));
  const std::string whole = (*bytes)->getBuffer().str();
  const size_t length = session->tokens().size();
  for (size_t at : {size_t(8), size_t(72), size_t(76), size_t(80)}) {
    std::string other = whole;
    other[at] = char(other[at] ^ 1);
    std::ofstream(file("b.session"), std::ios::binary) << other;
    EXPECT_FALSE(session->load(file("b.session"), note).ok()) << at;
  }
  std::ofstream(file("b.session"), std::ios::binary) << whole.substr(0, 75);
  EXPECT_FALSE(session->load(file("b.session"), note).ok());
  EXPECT_EQ(session->tokens().size(), length);
}

TEST_F(EndlessTest, WhatWasCutBackIsComputedAgain) {
  GenerationOptions options;
  options.most = 60;
  const std::vector<uint32_t> all = generate(options, nullptr).tokens;
  ASSERT_GT(session->evicted(), 0u);
  // Into what went: only the sinks are still there.
  ASSERT_TRUE(session->truncate(prompt.size() + 5).ok());
  EXPECT_EQ(session->evicted(), 0u);
  EXPECT_EQ(session->cached(), uint32_t(kSinks));
  ASSERT_TRUE(session->start(nullptr, 0, 20).ok());
  for (size_t i = 5; i < 25; ++i)
    EXPECT_EQ(*session->next(), all[i]) << i;
}

TEST_F(EndlessTest, WhatLeavesNoRoomIsRefused) {
  for (auto [sinks, window] : {std::pair(4u, 60u), {64u, 0u}, {63u, 1u}}) {
    const Endless endless{sinks, window};
    const Status status = session->setEndless(&endless);
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << sinks;
    EXPECT_NE(status.message().find("leave room in a context of 64"),
              std::string::npos);
  }
  // Without it the context is the end again.
  ASSERT_TRUE(session->setEndless(nullptr).ok());
  GenerationOptions options;
  options.most = 60;
  EXPECT_EQ(generate(options, nullptr).finish, Finish::Context);
  // From C.
  const mlir::llm::testing::HeldSession opened(package());
  ASSERT_NE(opened.session, nullptr);
  sprig_session *held = opened.session;
  sprig_endless endless;
  sprig_endless_init(&endless);
  EXPECT_EQ(endless.sinks, 4u);
  EXPECT_EQ(sprig_session_set_endless(nullptr, &endless),
            SPRIG_INVALID_ARGUMENT);
  endless.window = 64;
  EXPECT_EQ(sprig_session_set_endless(held, &endless), SPRIG_INVALID_ARGUMENT);
  endless.window = 0;
  EXPECT_EQ(sprig_session_set_endless(held, &endless), SPRIG_OK);
  std::vector<uint32_t> tokens = someTokens(100);
  EXPECT_EQ(sprig_session_append(held, tokens.data(), tokens.size()), SPRIG_OK)
      << sprig_last_error();
  EXPECT_EQ(sprig_session_length(held), 100u);
  EXPECT_EQ(sprig_session_evicted(held), 60u);
  EXPECT_EQ(sprig_session_set_endless(held, nullptr), SPRIG_OK);
  EXPECT_EQ(sprig_session_append(held, tokens.data(), tokens.size()),
            SPRIG_CONTEXT);
}

/// A package as any other.
class NotEndlessTest : public mlir::llm::testing::SpeculationTest {};

TEST_F(NotEndlessTest, APackageWithoutTheProgramSaysSo) {
  const Endless endless;
  const Status status = session->setEndless(&endless);
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_NE(status.message().find("--endless"), std::string::npos);
}

} // namespace
