// What tests of speculation share: a generated model with programs for trees, a
// text that repeats itself, and answers with and without guesses.
#ifndef SPRIG_TEST_TOOLS_SPECULATIONTEST_H
#define SPRIG_TEST_TOOLS_SPECULATIONTEST_H

#include "runtime/Session/Generation.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/tools/DeviceModelTest.h"
#include <random>

namespace mlir::llm::testing {

class SpeculationTest : public DeviceModelTest {
protected:
  /// What a test changes of how the model is compiled.
  virtual void prepare(CompileOptions &options) {
    options.passPipeline = "builtin.module(llm-make-draft{skip=1},"
                           "llm-default-pipeline)";
  }
  void SetUp() override {
    DeviceModelTest::SetUp();
    ASSERT_FALSE(::llvm::errorToBool(
        writeTinyLlama(file("tiny.gguf"), *tinyLlamaVariant("default"))));
    CompileOptions options = optionsFor(file("tiny.gguf"), "lavapipe");
    options.context = 128;
    options.widths = {1, 2, 4, 16};
    options.treeNodes = 16;
    prepare(options);
    compile(options);
    if (HasFatalFailure())
      return;
    open(/*validated=*/true, /*poisoned=*/true);
    if (IsSkipped())
      return;
    // A text that repeats itself, so that there is something to guess.
    std::mt19937 random(2);
    for (int i = 0; i < 30; ++i)
      prompt.push_back(random() % 6);
  }

  std::unique_ptr<sprig::Speculator>
  speculator(std::string name, bool chain = false, uint32_t nodes = 0) {
    sprig::SpeculationOptions options;
    options.drafts = {std::move(name)};
    options.chain = chain;
    options.nodes = nodes;
    auto made = sprig::Speculator::create(*session, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }

  struct Answer {
    std::vector<uint32_t> tokens;
    std::string text;
    sprig::Finish finish;
    bool operator==(const Answer &) const = default;
  };

  Answer generate(sprig::GenerationOptions options, sprig::Speculator *with,
                  const sprig::Tokenizer *tokenizer = nullptr) {
    EXPECT_TRUE(session->truncate(0).ok());
    return goOn(std::move(options), with, tokenizer);
  }
  Answer goOn(sprig::GenerationOptions options, sprig::Speculator *with,
              const sprig::Tokenizer *tokenizer = nullptr) {
    sprig::Generation run(*session, tokenizer, std::move(options), with);
    sprig::Status status = run.start(prompt);
    EXPECT_TRUE(status.ok()) << status.message();
    Answer answer;
    uint32_t token;
    std::string text;
    while (true) {
      auto more = run.next(token, text);
      EXPECT_TRUE(more.ok()) << more.status().message();
      answer.text += text;
      if (!more.ok() || !*more)
        break;
    }
    answer.tokens = run.tokens();
    answer.finish = run.finish();
    return answer;
  }

  std::vector<uint32_t> prompt;
};

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_TOOLS_SPECULATIONTEST_H
