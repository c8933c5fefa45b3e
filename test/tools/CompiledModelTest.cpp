// A generated model, compiled and run on a device: the whole way but for the
// command lines.
#include "lib/Quant/Format.h"
#include "runtime/Session/Session.h"
#include "test/lib/Weights/TinyLlama.h"
#include "tools/CompileDriver.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

const std::vector<uint32_t> kTokens = {1,  40,  50,  60, 70, 80,
                                       90, 100, 110, 12, 13};

class CompiledModelTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(::llvm::sys::fs::createUniqueDirectory("sprig-model", folder));
  }
  void TearDown() override { ::llvm::sys::fs::remove_directories(folder); }

  /// Skips where there is no device.
  void compile(StringRef variant, StringRef target) {
    std::string gguf = (folder + "/tiny.gguf").str();
    std::string package = (folder + "/tiny.sprig").str();
    ASSERT_FALSE(::llvm::errorToBool(mlir::llm::testing::writeTinyLlama(
        gguf, *mlir::llm::testing::tinyLlamaVariant(variant))));
    static const bool registered = [] {
      registerCompiler(registry());
      return true;
    }();
    ASSERT_TRUE(registered);
    MLIRContext context(registry());
    std::string message;
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
    CompileOptions options;
    options.source = gguf;
    options.output = package;
    options.targets = {target.str()};
    options.passPipeline = "builtin.module(llm-default-pipeline)";
    options.context = 32;
    options.widths = {1, 4};
    ASSERT_TRUE(succeeded(compileModel(context, options))) << message;

    ModelOptions open;
    open.cacheFolder = "";
    // Under the validation layers, core and synchronisation, where they are
    // installed: any message fails the test.
    open.choice.validation = vulkan::Instance::create({true, {}}).ok();
    open.choice.listener = [](const std::string &text) {
      ADD_FAILURE() << "validation: " << text;
    };
    auto model = Model::open(package, open);
    if (!model.ok() && (model.status().code() == StatusCode::NotFound ||
                        model.status().code() == StatusCode::Unsupported))
      GTEST_SKIP() << model.status().message();
    ASSERT_TRUE(model.ok()) << model.status().message();
    SessionOptions poisoned;
    poisoned.fill = kPoison;
    auto made = Session::create(*model, poisoned);
    ASSERT_TRUE(made.ok()) << made.status().message();
    session = std::move(*made);
    vocabulary = (*model)->metadata().model()->vocabulary();
  }

  /// Logits after each token of kTokens, fed in pieces of `piece`.
  std::vector<float> evaluate(size_t piece) {
    EXPECT_TRUE(session->truncate(0).ok());
    std::vector<float> logits(kTokens.size() * vocabulary);
    for (size_t at = 0; at < kTokens.size(); at += piece) {
      size_t count = std::min(piece, kTokens.size() - at);
      Status status = session->evaluate(kTokens.data() + at, count,
                                        logits.data() + at * vocabulary);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return logits;
  }

  uint32_t largest(const float *row) const {
    return uint32_t(std::max_element(row, row + vocabulary) - row);
  }

  static DialectRegistry &registry() {
    static DialectRegistry shared;
    return shared;
  }

  ::llvm::SmallString<64> folder;
  std::unique_ptr<Session> session;
  size_t vocabulary = 0;
};

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_F(CompiledModelTest, NumbersDoNotDependOnTheWidth) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> one = evaluate(1), four = evaluate(4), mixed = evaluate(3);
  for (float number : one)
    ASSERT_TRUE(std::isfinite(number));
  EXPECT_TRUE(sameBits(one, four));
  EXPECT_TRUE(sameBits(one, mixed));
  for (int round = 0; round < 20; ++round)
    ASSERT_TRUE(sameBits(one, evaluate(4))) << "round " << round;
}

TEST_F(CompiledModelTest, SamplingTakesTheLargestLogit) {
  compile("biases", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  constexpr size_t kSampled = 6;
  std::vector<uint32_t> expected = kTokens;
  std::vector<float> row(vocabulary);
  for (size_t i = 0; i < kSampled; ++i) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(
        session->evaluateLast(expected.data(), expected.size(), row.data())
            .ok());
    expected.push_back(largest(row.data()));
  }
  ASSERT_TRUE(session->truncate(0).ok());
  ASSERT_TRUE(session->start(kTokens.data(), kTokens.size(), kSampled).ok());
  for (size_t i = 0; i < kSampled; ++i) {
    auto token = session->next();
    ASSERT_TRUE(token.ok()) << token.status().message();
    EXPECT_EQ(*token, expected[kTokens.size() + i]);
  }
}

// The target that needs nothing but Vulkan 1.1 gives nearly the same numbers.
TEST_F(CompiledModelTest, TheFallbackAgrees) {
  compile("odd-groups", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> expected = evaluate(4);
  compile("odd-groups", "generic");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> got = evaluate(4);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2e-3f) << i;
}

} // namespace
