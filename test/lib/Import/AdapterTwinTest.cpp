// An adapter is for the model, not for the file: a checkpoint and its GGUF file, whose queries and keys have their rows in
// another order, give the same logits with it.
#include "test/lib/Import/AdaptedModel.h"
#include "test/lib/Import/TinyCheckpoint.h"
#include "llvm/Support/JSON.h"

#include <fstream>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

class AdapterTwins : public AdaptedModelTest, public ::testing::WithParamInterface<const char *> {
protected:
  /// Of rank 2, for the products of every kind of attention in layer 0.
  void writeAdapter(int64_t D, int64_t Q, int64_t KV) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-0.3f, 0.3f);
    llvm::json::Object header;
    std::vector<float> numbers;
    const auto add = [&](const std::string &name, int64_t rows, int64_t columns) {
      const int64_t begin = int64_t(numbers.size()) * 4;
      for (int64_t i = 0; i < rows * columns; ++i)
        numbers.push_back(uniform(random));
      header["base_model.model.model.layers.0.self_attn." + name + ".weight"] =
          llvm::json::Object{{"dtype", "F32"},
                             {"shape", llvm::json::Array{rows, columns}},
                             {"data_offsets", llvm::json::Array{begin, int64_t(numbers.size()) * 4}}};
    };
    for (auto [name, N, K] : {std::tuple("q_proj", Q, D), {"k_proj", KV, D}, {"v_proj", KV, D}, {"o_proj", D, Q}}) {
      add(std::string(name) + ".lora_A", 2, K);
      add(std::string(name) + ".lora_B", N, 2);
    }
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::filesystem::create_directories(path("adapter"));
    std::ofstream file(path("adapter/adapter_model.safetensors"), std::ios::binary);
    const uint64_t length = text.size();
    file.write(reinterpret_cast<const char *>(&length), 8);
    file << text;
    file.write(reinterpret_cast<const char *>(numbers.data()), std::streamsize(numbers.size() * 4));
    std::ofstream(path("adapter/adapter_config.json"))
        << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_rslora": false,
               "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]})";
  }

  std::vector<double> logits(const std::string &source, bool adapted) {
    reference::Options how;
    how.precision = reference::Precision::F64, how.threads = 1;
    std::vector<int32_t> tokens(12);
    std::iota(tokens.begin(), tokens.end(), 40);
    return logitsAfter(tokens, source, adapted ? path("adapter") : "", how);
  }
};

TEST_P(AdapterTwins, GiveTheSame) {
  const std::string checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
  if (!std::filesystem::exists(checkpoint))
    GTEST_SKIP() << "needs " << checkpoint;
  llvm::Error converted = convertToGGUF(checkpoint, path("model.gguf"));
  ASSERT_FALSE(bool(converted)) << llvm::toString(std::move(converted));
  std::ifstream stream(checkpoint + "/config.json");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  auto config = llvm::json::parse(text);
  ASSERT_TRUE(bool(config));
  const auto number = [&](StringRef key) { return *config->getAsObject()->getInteger(key); };
  const int64_t size = number("head_dim");
  writeAdapter(number("hidden_size"), size * number("num_attention_heads"), size * number("num_key_value_heads"));

  const std::vector<double> folderLogits = logits(checkpoint, true), fileLogits = logits(path("model.gguf"), true);
  EXPECT_LT(distance(folderLogits, fileLogits), 1e-5);
  EXPECT_GT(distance(folderLogits, logits(checkpoint, false)), 1e-3); // the adapter does something
}

INSTANTIATE_TEST_SUITE_P(Tiny, AdapterTwins, ::testing::Values("llama", "llama-head-dim-24"),
                         [](const ::testing::TestParamInfo<const char *> &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
