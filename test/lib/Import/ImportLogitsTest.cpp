// Imported models are right to the logit: the tiny checkpoints of ../shared/reference as they are, and as GGUF files,
// evaluated by the reference evaluator, against the logits that the transformers library computed.
#include "lib/Reference/Evaluator.h"
#include "test/lib/Import/ImportTesting.h"
#include "test/lib/Import/TinyCheckpoint.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;

namespace {

class ImportLogits : public ImportTest, public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    ImportTest::SetUp();
    checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
    if (!std::filesystem::exists(checkpoint))
      GTEST_SKIP() << "needs " << checkpoint;
  }
  /// The model at `source` gives the logits that the checkpoint expects.
  void expectLogits(const std::string &source);

  std::string checkpoint;
};

void ImportLogits::expectLogits(const std::string &source) {
  llvm::Expected<ExpectedLogits> expected = readExpectedLogits(checkpoint);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  ImportOptions options;
  options.folder = folder.string();
  llvm::Expected<OwningOpRef<ModuleOp>> module = importModel(&context, source, options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  std::unique_ptr<reference::Evaluator> evaluator = reference::Evaluator::create(**module, folder.string());
  ASSERT_TRUE(evaluator);

  const size_t T = expected->tokens.size();
  std::vector<int32_t> positions(T);
  std::iota(positions.begin(), positions.end(), 0);
  FailureOr<SmallVector<Tensor>> results =
      evaluator->run("forward", {Tensor::ids(expected->tokens), Tensor::ids(positions), Tensor::ids(positions)});
  ASSERT_TRUE(succeeded(results));
  const std::vector<double> logits = results->front().toDoubles();
  const size_t V = expected->first.size();
  ASSERT_EQ(logits.size(), T * V);
  for (size_t token = 0; token < V; ++token) {
    EXPECT_NEAR(logits[token], expected->first[token], 1e-4) << "token " << token << " at the first position";
    EXPECT_NEAR(logits[(T - 1) * V + token], expected->last[token], 1e-4) << "token " << token << " at the last";
  }
  for (size_t t = 0; t < T; ++t) {
    const auto row = logits.begin() + int64_t(t * V);
    EXPECT_EQ(std::max_element(row, row + int64_t(V)) - row, expected->argmax[t]) << "position " << t;
  }
}

TEST_P(ImportLogits, OfAFolder) { expectLogits(checkpoint); }

class GGUFLogits : public ImportLogits {};

TEST_P(GGUFLogits, OfAFile) {
  llvm::Error converted = convertToGGUF(checkpoint, path("model.gguf"));
  ASSERT_FALSE(bool(converted)) << llvm::toString(std::move(converted));
  expectLogits(path("model.gguf"));
}

std::string nameOf(const ::testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, ImportLogits,
                         ::testing::Values("gemma2", "gemma3", "gpt2", "llama", "llama-head-dim-24", "llama-tied-bf16",
                                           "llama3-rope", "mistral-swa", "mixtral", "olmo2", "phi3", "qwen2", "qwen3"),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Tiny, GGUFLogits,
                         ::testing::Values("llama", "llama-head-dim-24", "llama-tied-bf16", "llama3-rope",
                                           "mistral-swa"),
                         nameOf);

} // namespace
