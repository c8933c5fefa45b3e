// The tiny checkpoints of ../shared/reference, compiled from their folders and
// run on a device, against the logits that the transformers library computed.
#include "test/lib/Import/TinyCheckpoint.h"
#include "test/tools/DeviceModelTest.h"

using namespace mlir;
using namespace mlir::llm;
using mlir::llm::testing::DeviceModelTest;
using mlir::llm::testing::ExpectedLogits;

namespace {

class FamiliesTest : public DeviceModelTest,
                     public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
    if (!llvm::sys::fs::exists(checkpoint))
      GTEST_SKIP() << "needs " << checkpoint;
    DeviceModelTest::SetUp();
  }

  std::string checkpoint;
};

TEST_P(FamiliesTest, LogitsAreThoseOfTransformers) {
  llvm::Expected<ExpectedLogits> expected =
      mlir::llm::testing::readExpectedLogits(checkpoint);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  CompileOptions options = optionsFor(checkpoint, "lavapipe");
  options.context = 64;
  options.widths = {1, 4, 16};
  // Keys and values of 16 bits alone move these logits by up to 2.8e-3, in the
  // reference evaluator, too.
  const std::string name = GetParam();
  if (name == "gemma3" || name == "llama-tied-bf16")
    options.cacheBits = 32;
  compile(options);
  if (!HasFatalFailure())
    open(/*validated=*/false, /*poisoned=*/false);
  if (IsSkipped() || HasFatalFailure())
    return;

  const size_t T = expected->tokens.size(), V = expected->first.size();
  ASSERT_EQ(vocabulary, V);
  const std::vector<uint32_t> tokens(expected->tokens.begin(),
                                     expected->tokens.end());
  const std::vector<float> logits = logitsOf(tokens, 16);
  for (size_t token = 0; token < V; ++token) {
    EXPECT_NEAR(logits[token], expected->first[token], 2e-3)
        << "token " << token << " at the first position";
    EXPECT_NEAR(logits[(T - 1) * V + token], expected->last[token], 2e-3)
        << "token " << token << " at the last";
  }
  for (size_t t = 0; t < T; ++t) {
    std::vector<float> row(logits.begin() + int64_t(t * V),
                           logits.begin() + int64_t((t + 1) * V));
    const auto best = std::max_element(row.begin(), row.end());
    const int64_t token = best - row.begin();
    const float top = *best;
    *best = -INFINITY;
    if (top - *std::max_element(row.begin(), row.end()) > 4e-3)
      EXPECT_EQ(token, expected->argmax[t]) << "position " << t;
  }
}

std::string nameOf(const ::testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, FamiliesTest,
                         ::testing::Values("gemma2", "gemma3", "gpt2", "llama",
                                           "llama-head-dim-24",
                                           "llama-tied-bf16", "llama3-rope",
                                           "mistral-swa", "olmo2", "phi3",
                                           "qwen2", "qwen3"),
                         nameOf);

} // namespace
