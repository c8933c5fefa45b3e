// Quantised checkpoints and adapters of every family: logits are those of the numbers that they mean.
#include "test/lib/Import/AdaptedModel.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/QuantisedCheckpoint.h"

#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

constexpr int64_t kRank = 2;
constexpr double kFactor = 2; // lora_alpha over the rank

class FamilyTest : public AdaptedModelTest, public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    ImportTest::SetUp();
    std::filesystem::create_directories(path("model"));
    llvm::Error written = writeVariant(GetParam(), path("model"));
    ASSERT_FALSE(bool(written)) << llvm::toString(std::move(written));
  }

  std::vector<double> logits(const std::string &source, const char *adapter = nullptr) {
    return logitsAfter({3, 14, 15, 9, 2, 6}, source, adapter ? path(adapter) : "", {});
  }

  /// An adapter of all products of layers whose names `wants`, in `adapter`; the model with it within, in `merged`.
  template <typename Wants> void adapt(const std::string &from, Wants wants) {
    auto tensors = readPlain(from);
    ASSERT_TRUE(bool(tensors)) << llvm::toString(tensors.takeError());
    const bool turned = StringRef(GetParam()).starts_with("gpt2");
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-0.2f, 0.2f);
    std::vector<PlainTensor> factors;
    for (PlainTensor &tensor : *tensors) {
      // Layers that predict further tokens are left out.
      if (!tensor.isProduct() || !wants(StringRef(tensor.key)) || StringRef(tensor.key).contains("mtp_layers"))
        continue;
      const int64_t N = tensor.shape[turned ? 1 : 0], K = tensor.shape[turned ? 0 : 1];
      std::vector<float> A(size_t(kRank * K)), B(size_t(N * kRank));
      for (std::vector<float> *numbers : {&A, &B})
        llvm::for_each(*numbers, [&](float &number) { number = uniform(random); });
      for (int64_t n = 0; n < N; ++n)
        for (int64_t k = 0; k < K; ++k)
          for (int64_t r = 0; r < kRank; ++r)
            tensor.numbers[size_t(turned ? k * N + n : n * K + k)] +=
                float(kFactor) * B[size_t(n * kRank + r)] * A[size_t(r * K + k)];
      const std::string name = "base_model.model." + StringRef(tensor.key).drop_back(7).str();
      factors.push_back({name + ".lora_A.weight", {kRank, K}, std::move(A)});
      factors.push_back({name + ".lora_B.weight", {N, kRank}, std::move(B)});
    }
    ASSERT_FALSE(factors.empty());
    ASSERT_FALSE(::llvm::errorToBool(writePlain(*tensors, path("model"), path("merged"))));
    ASSERT_FALSE(::llvm::errorToBool(writePlain(factors, path("model"), path("adapter"))));
    std::filesystem::rename(path("adapter/model.safetensors"), path("adapter/adapter_model.safetensors"));
    std::ofstream(path("adapter/adapter_config.json")) << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})";
  }
};

//===- Codes ------------------------------------------------------------===//

class QuantisedFamilies : public FamilyTest {};

TEST_P(QuantisedFamilies, GiveTheLogitsOfTheirNumbers) {
  for (SplitMethod method : {SplitMethod::GPTQ, SplitMethod::GPTQActOrder, SplitMethod::AWQ, SplitMethod::Packed,
                             SplitMethod::PackedActOrder, SplitMethod::PackedZeros}) {
    ASSERT_FALSE(::llvm::errorToBool(writeSplit(path("model"), method, path("coded"), path("plain"))));
    // Another order of columns is another order of a sum.
    EXPECT_LT(distance(logits(path("coded")), logits(path("plain"))), 1e-4) << "method " << int(method);
  }
}

const char *const kFamilies[] = {
    "llama-all-biases", "mistral",   "qwen2",     "qwen3",       "qwen2-moe",   "qwen3-moe", "gemma2",
    "gemma3",           "phi3",      "phi3-long", "olmo2",       "stablelm",    "granite",   "gpt2",
    "mixtral",          "smollm3",   "baichuan",  "baichuan2",   "deepseek-v2", "deepseek-v3", "minicpm",
    "mimo",
};
std::string nameOf(const ::testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Generated, QuantisedFamilies, ::testing::ValuesIn(kFamilies), nameOf);

//===- Adapters ---------------------------------------------------------===//

class AdaptedFamilies : public FamilyTest {};

TEST_P(AdaptedFamilies, GiveTheLogitsOfTheSum) {
  auto plain = readPlain(path("model"));
  ASSERT_TRUE(bool(plain));
  ASSERT_FALSE(::llvm::errorToBool(writePlain(*plain, path("model"), path("apart")))); // an expert a matrix
  adapt(path("model"), [](StringRef) { return true; });
  const std::vector<double> merged = logits(path("merged"));
  EXPECT_LT(distance(logits(path("apart"), "adapter"), merged), 1e-4);
  EXPECT_GT(distance(logits(path("apart")), merged), 1e-3); // the adapter does something
}

TEST_P(AdaptedFamilies, OnCodes) {
  for (SplitMethod method : {SplitMethod::GPTQActOrder, SplitMethod::AWQ}) {
    ASSERT_FALSE(::llvm::errorToBool(writeSplit(path("model"), method, path("coded"), path("plain"))));
    adapt(path("plain"), [](StringRef) { return true; });
    EXPECT_LT(distance(logits(path("coded"), "adapter"), logits(path("merged"))), 1e-4) << "method " << int(method);
  }
}

INSTANTIATE_TEST_SUITE_P(Generated, AdaptedFamilies, ::testing::ValuesIn(kFamilies), nameOf);

/// The same adapter on the model's GGUF file, whose tensors have other names and, of some, rows in another order.
class AdaptedFiles : public FamilyTest {};

TEST_P(AdaptedFiles, GiveTheLogitsOfTheSum) {
  llvm::Error converted = convertToGGUF(path("model"), path("model.gguf"));
  ASSERT_FALSE(bool(converted)) << llvm::toString(std::move(converted));
  // Experts are one tensor there.
  adapt(path("model"), [](StringRef key) { return !key.contains(".experts."); });
  EXPECT_LT(distance(logits(path("model.gguf"), "adapter"), logits(path("merged"))), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Generated, AdaptedFiles,
                         ::testing::Values("llama-all-biases", "mistral", "qwen2", "qwen3", "qwen3-moe", "qwen2-moe", "gemma2",
                                           "gemma3", "phi3", "olmo2", "stablelm", "granite", "smollm3", "mixtral", "deepseek-v2", "minicpm"),
                         nameOf);

/// Files of the bare model, as the first ones of GPT-2 are, lack the root that adapters name.
class BareModels : public FamilyTest {};

TEST_P(BareModels, TakeAdaptersOfTheWhole) {
  adapt(path("model"), [](StringRef) { return true; });
  auto plain = readPlain(path("model"));
  ASSERT_TRUE(bool(plain));
  for (PlainTensor &tensor : *plain) {
    StringRef key = tensor.key;
    if (key.consume_front("transformer.") || key.consume_front("model."))
      tensor.key = key.str();
  }
  ASSERT_FALSE(::llvm::errorToBool(writePlain(*plain, path("model"), path("bare"))));
  EXPECT_LT(distance(logits(path("bare"), "adapter"), logits(path("merged"))), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Generated, BareModels, ::testing::Values("gpt2", "llama"), nameOf);

/// Sessions choose adapters as tokens choose experts: not both at once.
class SwitchedExperts : public FamilyTest {};

TEST_P(SwitchedExperts, AreRefused) {
  adapt(path("model"), [](StringRef key) { return key.contains(".experts."); });
  auto plain = readPlain(path("model"));
  ASSERT_TRUE(bool(plain));
  ASSERT_FALSE(::llvm::errorToBool(writePlain(*plain, path("model"), path("apart"))));
  auto imported = importModel(&context, path("apart"), {});
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { said += diagnostic.str(); });
  WeightStore store(folder.string());
  EXPECT_TRUE(failed(addSwitchableAdapters(**imported, {{"one", path("adapter")}}, store)));
  EXPECT_MESSAGE(said, "leave the experts of a token as they are, but got one that changes "
                       "'model.layers.0.block_sparse_moe.experts.0.w1'; add it for good (--adapter)");
}

INSTANTIATE_TEST_SUITE_P(Generated, SwitchedExperts, ::testing::Values("mixtral"), nameOf);

/// Inputs of experts are rounded as those of other products are, each expert's with a scale of its own.
class RoundedExperts : public FamilyTest {};

TEST_P(RoundedExperts, TakeRoundedInputs) {
  ASSERT_FALSE(::llvm::errorToBool(writeSplit(path("model"), SplitMethod::Packed, path("coded"), path("plain"))));
  std::string text = [&] {
    std::ifstream stream(path("coded/config.json"));
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  }();
  const std::string none = "\"input_activations\":null";
  ASSERT_NE(text.find(none), std::string::npos);
  text.replace(text.find(none), none.size(),
               R"("input_activations":{"num_bits":8,"type":"int","strategy":"token","symmetric":true,"dynamic":true})");
  std::ofstream(path("coded/config.json")) << text;
  auto imported = importModel(&context, path("coded"), {});
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  module = std::move(*imported);
  const auto products = all<ExpertLinearOp>();
  ASSERT_FALSE(products.empty());
  for (ExpertLinearOp product : products) {
    auto input = product.getInput().getDefiningOp<QuantizeOp>();
    ASSERT_TRUE(input);
    EXPECT_EQ(input.getType(), product.getInput().getType());
    EXPECT_EQ(cast<QuantizedType>(input.getType().getElementType()).getLevels()[0].group, kWholeRow);
  }
  // Near to what it rounds.
  const double change = distance(logits(path("coded")), logits(path("plain")));
  EXPECT_GT(change, 0);
  EXPECT_LT(change, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Generated, RoundedExperts, ::testing::Values("mixtral", "qwen2-moe"), nameOf);

} // namespace
