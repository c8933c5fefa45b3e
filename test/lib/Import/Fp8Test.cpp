// Checkpoints in FP8: every usual way to store scales gives the logits of the
// same numbers in F32.
#include "lib/Reference/Evaluator.h"
#include "test/lib/Import/Fp8Checkpoint.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/ImportTesting.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;
using sprig::quant::Format;

namespace {

const Fp8Scheme kSchemes[] = {
    {"weight_scale_inv", 16, 16, fp8Blocks,
     R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16],
         "activation_scheme": "dynamic"})"},
    {"scale", 8, 32, fp8Blocks,
     R"({"quant_method": "fp8", "weight_block_size": [8, 32]})"},
    {"weight_scale", 0, 0, [](int64_t, int64_t) { return std::vector<int64_t>(); },
     R"({"quant_method": "fp8", "activation_scheme": "static",
         "modules_to_not_convert": ["lm_head"]})"},
    {"weight_scale", 1, 0, [](int64_t rows, int64_t) { return std::vector{rows}; },
     R"({"quant_method": "fp8"})"},
    {"weight_scale", 16, 16, fp8Blocks,
     R"({"quant_method": "compressed-tensors", "config_groups": {"g": {
         "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float",
         "strategy": "block", "block_structure": [16, 16], "symmetric": true},
         "input_activations": {"num_bits": 8, "type": "float", "dynamic": true,
         "strategy": "group", "group_size": 128, "symmetric": true}}}})"},
    {"weight_scale", 0, 0, [](int64_t, int64_t) { return std::vector<int64_t>{1}; },
     R"({"quant_method": "compressed-tensors", "config_groups": {"g": {
         "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float",
         "strategy": "tensor", "symmetric": true}}}})"},
    {"weight_scale_inv", 16, 32, fp8Blocks,
     R"({"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [16, 32]})", Format::F8E5M2},
};

class Fp8 : public ImportTest {
protected:
  /// The variant in FP8 in `coded`, and in F32 in `plain`.
  void write(StringRef variant, const Fp8Scheme &scheme, bool scales = true) {
    std::filesystem::create_directories(path("model"));
    ASSERT_FALSE(bool(writeVariant(variant, path("model"))));
    llvm::Error error = writeFp8(path("model"), scheme, path("coded"), path("plain"), scales);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  std::vector<double> logitsOf(const char *name) {
    ImportOptions options;
    options.folder = path(name);
    auto imported = importModel(&context, path(name), options);
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      return {};
    }
    auto evaluator = reference::Evaluator::create(**imported, path(name));
    const std::vector<int32_t> ids{3, 14, 15, 9, 2, 6};
    std::vector<int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    auto results = evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(positions), Tensor::ids(positions)});
    EXPECT_TRUE(succeeded(results));
    return failed(results) ? std::vector<double>() : results->front().toDoubles();
  }

  void expectSame(StringRef variant, const Fp8Scheme &scheme) {
    write(variant, scheme);
    const std::vector<double> coded = logitsOf("coded"), plain = logitsOf("plain");
    ASSERT_EQ(coded.size(), plain.size());
    for (size_t i = 0; i < coded.size(); ++i)
      ASSERT_NEAR(coded[i], plain[i], 1e-5) << scheme.name << " number " << i;
  }
};

TEST_F(Fp8, EveryWayToStoreScales) {
  // Widths that no block divides.
  for (const Fp8Scheme &scheme : kSchemes)
    expectSame("llama-odd-widths", scheme);
}

TEST_F(Fp8, Experts) { expectSame("qwen3-moe-dense-layer", kSchemes[0]); }
TEST_F(Fp8, LatentAttention) { expectSame("deepseek-v3", kSchemes[0]); }
// Packed rows, norms beside, shared experts: a scale a block, a row, and one for all.
TEST_F(Fp8, OtherFamilies) {
  for (const char *variant : {"phi3", "qwen2-moe", "gemma3", "smollm3", "deepseek-v2", "stablelm-bias"})
    for (const Fp8Scheme *scheme : {&kSchemes[0], &kSchemes[2], &kSchemes[3]})
      expectSame(variant, *scheme);
}

// Rows of whole units keep their codes (lib/Quant/Affine.h), others become numbers.
TEST_F(Fp8, RowsThatKeepTheirCodes) {
  for (const Fp8Scheme *scheme : {&kSchemes[1], &kSchemes[2], &kSchemes[3], std::end(kSchemes) - 1})
    expectSame("llama", *scheme);
}

TEST_F(Fp8, WithoutScales) {
  write("llama-odd-widths", kSchemes[0], /*scales=*/false);
  ImportOptions options;
  options.folder = path("coded");
  EXPECT_MESSAGE(messageOf(importModel(&context, path("coded"), options)),
                 "q_proj.weight_scale_inv' of shape 2x3, but got none");
}

} // namespace
