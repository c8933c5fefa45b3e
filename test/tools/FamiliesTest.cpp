// The tiny checkpoints of ../shared/reference, compiled from their folders and
// run on a device, against the logits that the transformers library computed.
#include "runtime/Session/Session.h"
#include "test/lib/Import/TinyCheckpoint.h"
#include "tools/CompileDriver.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;
using mlir::llm::testing::ExpectedLogits;

namespace {

class FamiliesTest : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
    if (!llvm::sys::fs::exists(checkpoint))
      GTEST_SKIP() << "needs " << checkpoint;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-family", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string checkpoint;
  llvm::SmallString<64> folder;
};

DialectRegistry &registry() {
  static DialectRegistry *shared = [] {
    auto *made = new DialectRegistry;
    registerCompiler(*made);
    return made;
  }();
  return *shared;
}

TEST_P(FamiliesTest, LogitsAreThoseOfTransformers) {
  llvm::Expected<ExpectedLogits> expected =
      mlir::llm::testing::readExpectedLogits(checkpoint);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  const std::string package = (folder + "/tiny.sprig").str();
  MLIRContext context(registry());
  std::string message;
  context.getDiagEngine().registerHandler(
      [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
  CompileOptions compile;
  compile.source = checkpoint, compile.output = package;
  compile.targets = {"lavapipe"};
  compile.passPipeline = "builtin.module(llm-default-pipeline)";
  compile.context = 64;
  compile.widths = {1, 4, 16};
  // Keys and values of 16 bits alone move these logits by up to 2.8e-3, in the
  // reference evaluator, too.
  const std::string name = GetParam();
  if (name == "gemma3" || name == "llama-tied-bf16")
    compile.cacheBits = 32;
  ASSERT_TRUE(succeeded(compileModel(context, compile))) << message;

  sprig::ModelOptions open;
  open.cacheFolder = "";
  auto model = sprig::Model::open(package, open);
  if (!model.ok() && (model.status().code() == sprig::StatusCode::NotFound ||
                      model.status().code() == sprig::StatusCode::Unsupported))
    GTEST_SKIP() << model.status().message();
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = sprig::Session::create(*model, {});
  ASSERT_TRUE(session.ok()) << session.status().message();

  const size_t T = expected->tokens.size(), V = expected->first.size();
  const std::vector<uint32_t> tokens(expected->tokens.begin(),
                                     expected->tokens.end());
  std::vector<float> logits(T * V);
  constexpr size_t kPiece = 16;
  for (size_t at = 0; at < T; at += kPiece) {
    sprig::Status status = (*session)->evaluate(
        tokens.data() + at, std::min(kPiece, T - at), logits.data() + at * V);
    ASSERT_TRUE(status.ok()) << status.message();
  }
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
