// Checkpoints in FP8: every usual way to store scales gives the logits of the
// same numbers in F32.
#include "lib/Quant/Format.h"
#include "lib/Reference/Evaluator.h"
#include "lib/Weights/SafetensorsWriter.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/ImportTesting.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using nlohmann::json;
using reference::Tensor;
using sprig::quant::Format;

namespace {

/// How a checkpoint stores its scales.
struct Scheme {
  const char *name;
  int64_t rows, columns; ///< that share a scale; 0: all
  std::vector<int64_t> (*shape)(int64_t rows, int64_t columns);
  const char *config;
};

std::vector<int64_t> blocks(int64_t rows, int64_t columns) {
  return {rows, columns};
}

const Scheme kSchemes[] = {
    {"weight_scale_inv", 16, 16, blocks,
     R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 16],
         "activation_scheme": "dynamic"})"},
    {"scale", 8, 32, blocks,
     R"({"quant_method": "fp8", "weight_block_size": [8, 32]})"},
    {"weight_scale", 0, 0, [](int64_t, int64_t) { return std::vector<int64_t>(); },
     R"({"quant_method": "fp8", "activation_scheme": "static",
         "modules_to_not_convert": ["lm_head"]})"},
    {"weight_scale", 1, 0, [](int64_t rows, int64_t) { return std::vector{rows}; },
     R"({"quant_method": "fp8"})"},
    {"weight_scale", 16, 16, blocks,
     R"({"quant_method": "compressed-tensors", "config_groups": {"g": {
         "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float",
         "strategy": "block", "block_structure": [16, 16], "symmetric": true},
         "input_activations": {"num_bits": 8, "type": "float", "dynamic": true,
         "strategy": "group", "group_size": 128, "symmetric": true}}}})"},
    {"weight_scale", 0, 0, [](int64_t, int64_t) { return std::vector<int64_t>{1}; },
     R"({"quant_method": "compressed-tensors", "config_groups": {"g": {
         "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float",
         "strategy": "tensor", "symmetric": true}}}})"},
};

class Fp8 : public ImportTest {
protected:
  /// Writes the variant with its matrices in FP8 to `coded`, and with the
  /// numbers that these stand for to `plain`. Without `suffix` scales are left
  /// out.
  void write(StringRef variant, const Scheme &scheme, bool scales = true) {
    for (const char *name : {"model", "coded", "plain"})
      std::filesystem::create_directories(path(name));
    ASSERT_FALSE(bool(writeVariant(variant, path("model"))));
    json config = json::parse(std::ifstream(path("model") + "/config.json"));
    std::ofstream(path("plain") + "/config.json") << config;
    config["quantization_config"] = json::parse(scheme.config);
    std::ofstream(path("coded") + "/config.json") << config;
    auto source = openWeightSource(path("model") + "/model.safetensors");
    auto coded = SafetensorsWriter::create(path("coded") + "/model.safetensors"),
         plain = SafetensorsWriter::create(path("plain") + "/model.safetensors");
    ASSERT_TRUE(bool(source) && bool(coded) && bool(plain));
    const auto add = [](SafetensorsWriter &writer, StringRef key, Format format,
                        ArrayRef<int64_t> shape, std::span<const std::byte> data) {
      llvm::Error error = writer.add(key.str(), format, shape, data);
      EXPECT_FALSE(bool(error));
      llvm::consumeError(std::move(error));
    };
    for (const WeightTensor &tensor : (*source)->tensors()) {
      const StringRef key = tensor.key;
      // Experts are one tensor each in checkpoints of this kind.
      if (key.ends_with("experts.gate_up_proj") || key.ends_with("experts.down_proj")) {
        const bool both = key.ends_with("gate_up_proj");
        const int64_t N = tensor.shape[1] / (both ? 2 : 1);
        for (int64_t expert = 0; expert < tensor.shape[0]; ++expert)
          for (const char *part : {"gate_proj", "up_proj", "down_proj"})
            if ((part == StringRef("down_proj")) != both)
              addMatrix(key.rsplit('.').first.str() + "." + std::to_string(expert) + "." + part,
                        N, tensor.shape[2], scheme, scales, **coded, **plain, add);
        continue;
      }
      if (key.ends_with("_proj.weight")) {
        addMatrix(key.drop_back(7).str(), tensor.shape[0], tensor.shape[1],
                  scheme, scales, **coded, **plain, add);
        continue;
      }
      for (auto *writer : {&*coded, &*plain})
        add(**writer, key, tensor.format, tensor.shape, tensor.data);
    }
    ASSERT_FALSE(bool((*coded)->finish()));
    ASSERT_FALSE(bool((*plain)->finish()));
  }

  template <typename Add>
  void addMatrix(const std::string &stem, int64_t N, int64_t K,
                 const Scheme &scheme, bool withScales,
                 SafetensorsWriter &coded, SafetensorsWriter &plain, Add add) {
    const int64_t rows = scheme.rows ? scheme.rows : N,
                  columns = scheme.columns ? scheme.columns : K;
    const int64_t R = (N + rows - 1) / rows, C = (K + columns - 1) / columns;
    std::vector<std::byte> codes(size_t(N * K));
    for (size_t i = 0; i < codes.size(); ++i) // below the code of NaN
      codes[i] = std::byte((i * 37 + stem.size() * 11) % 100 + 128 * (i % 3 == 0));
    std::vector<float> scales(size_t(R * C)), numbers(codes.size());
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = 0.02f + 0.003f * float(i % 7);
    sprig::quant::decode(Format::F8E4M3, codes.data(), numbers.data(), codes.size());
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        numbers[size_t(n * K + k)] *= scales[size_t(n / rows * C + k / columns)];
    add(coded, stem + ".weight", Format::F8E4M3, {N, K}, codes);
    if (withScales)
      add(coded, stem + "." + scheme.name, Format::F32, scheme.shape(R, C),
          std::as_bytes(std::span(scales)));
    add(plain, stem + ".weight", Format::F32, {N, K}, std::as_bytes(std::span(numbers)));
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

  void expectSame(StringRef variant, const Scheme &scheme) {
    write(variant, scheme);
    const std::vector<double> coded = logitsOf("coded"), plain = logitsOf("plain");
    ASSERT_EQ(coded.size(), plain.size());
    for (size_t i = 0; i < coded.size(); ++i)
      ASSERT_NEAR(coded[i], plain[i], 1e-5) << scheme.name << " number " << i;
  }
};

TEST_F(Fp8, EveryWayToStoreScales) {
  // Widths that no block divides.
  for (const Scheme &scheme : kSchemes)
    expectSame("llama-odd-widths", scheme);
}

TEST_F(Fp8, Experts) { expectSame("qwen3-moe-dense-layer", kSchemes[0]); }
TEST_F(Fp8, LatentAttention) { expectSame("deepseek-v3", kSchemes[0]); }

TEST_F(Fp8, WithoutScales) {
  write("llama-odd-widths", kSchemes[0], /*scales=*/false);
  ImportOptions options;
  options.folder = path("coded");
  EXPECT_MESSAGE(messageOf(importModel(&context, path("coded"), options)),
                 "q_proj.weight_scale_inv' of shape 2x3, but got none");
}

} // namespace
