// Checkpoints in FP8 on a device, where codes and scales keep their size: the logits of the reference evaluator.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "test/lib/Import/Fp8Checkpoint.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/tools/DeviceModelTest.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

struct Fp8Case {
  const char *name, *variant, *target;
  Fp8Scheme scheme;
  int64_t largestBinding = 0;
};

class Fp8OnDevice : public DeviceModelTest, public ::testing::WithParamInterface<Fp8Case> {};

std::vector<double> evaluated(const std::string &folder, ArrayRef<uint32_t> tokens) {
  MLIRContext context;
  auto module = importModel(&context, folder, ImportOptions());
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return {};
  }
  std::vector<int32_t> ids(tokens.begin(), tokens.end()), places(tokens.size());
  std::iota(places.begin(), places.end(), 0);
  using reference::Tensor;
  auto evaluator = reference::Evaluator::create(**module, "");
  auto results = evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(places), Tensor::ids(places)});
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
}

TEST_P(Fp8OnDevice, LogitsAreThoseOfTheReference) {
  const Fp8Case &one = GetParam();
  ASSERT_FALSE(::llvm::sys::fs::create_directories(file("model")));
  ASSERT_FALSE(::llvm::errorToBool(writeVariant(one.variant, file("model"))));
  ASSERT_FALSE(::llvm::errorToBool(writeFp8(file("model"), one.scheme, file("coded"), file("plain"))));
  CompileOptions options = optionsFor(file("coded"), one.target);
  options.context = 64;
  options.widths = {1, 16};
  options.cacheBits = 32;
  options.largestBinding = one.largestBinding;
  compile(options);
  if (!HasFatalFailure())
    open(/*validated=*/true, /*poisoned=*/true);
  if (IsSkipped() || HasFatalFailure())
    return;

  std::vector<uint32_t> tokens(24);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = uint32_t(i * 29 % 77);
  const std::vector<double> expected = evaluated(file("coded"), tokens);
  const std::vector<float> logits = logitsOf(tokens, 16);
  ASSERT_EQ(expected.size(), logits.size());
  double largest = 0;
  for (const double logit : expected)
    largest = std::max(largest, std::fabs(logit));
  ASSERT_GT(largest, 0.1);
  for (size_t i = 0; i < logits.size(); ++i)
    ASSERT_NEAR(logits[i], expected[i], 2e-3 * std::max(1.0, largest / 10)) << "token " << i / vocabulary;
  // No bit depends on the width.
  EXPECT_TRUE(::llvm::equal(logitsOf(tokens, 1), logits));

  // A byte a code, as in the file; of rows that are no whole units, numbers.
  if (StringRef(one.name).starts_with("Odd"))
    return;
  uint64_t codes = 0;
  ASSERT_FALSE(::llvm::sys::fs::file_size(file("coded") + "/model.safetensors", codes));
  EXPECT_LT(session->model().package().weightBytes(), codes * 5 / 4);
}

constexpr const char *kDeepSeek = R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
  "activation_scheme": "dynamic"})";

INSTANTIATE_TEST_SUITE_P(
    Schemes, Fp8OnDevice,
    ::testing::Values(
        Fp8Case{"Blocks", "llama", "lavapipe",
                {"weight_scale_inv", 8, 32, fp8Blocks, R"({"quant_method": "fp8", "weight_block_size": [8, 32]})"}},
        Fp8Case{"Rows", "qwen3", "generic",
                {"weight_scale", 1, 0, [](int64_t rows, int64_t) { return std::vector{rows}; },
                 R"({"quant_method": "fp8"})"}},
        Fp8Case{"All", "llama-all-biases", "lavapipe",
                {"weight_scale", 0, 0, [](int64_t, int64_t) { return std::vector<int64_t>(); },
                 R"({"quant_method": "fp8"})"}},
        Fp8Case{"E5M2", "llama-tied", "lavapipe",
                {"weight_scale_inv", 16, 32, fp8Blocks,
                 R"({"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [16, 32]})",
                 sprig::quant::Format::F8E5M2}},
        Fp8Case{"DeepSeekV3", "deepseek-v3-wide", "lavapipe", {"weight_scale_inv", 128, 128, fp8Blocks, kDeepSeek}},
        Fp8Case{"DeepSeekV3InParts", "deepseek-v3-wide", "lavapipe",
                {"weight_scale_inv", 128, 128, fp8Blocks, kDeepSeek}, 3 << 16},
        Fp8Case{"OddRows", "llama-odd-widths", "lavapipe",
                {"weight_scale_inv", 16, 16, fp8Blocks,
                 R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16]})"}}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
