// Hugging Face folders: both spellings of config.json, where weights lie, and
// what is refused.
#include "lib/Weights/SafetensorsWriter.h"
#include "test/lib/Import/ImportTesting.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using nlohmann::json;
using sprig::quant::Format;

namespace {

/// A folder with a model of D = 32, H = 4, G = 2, E = 8, F = 48, L = 2, V = 16,
/// whose parts a test changes before it is imported.
class CheckpointTest : public ImportTest {
protected:
  void SetUp() override {
    ImportTest::SetUp();
    config = json::parse(R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
      "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 16,
      "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
      "hidden_act": "silu", "tie_word_embeddings": true,
      "torch_dtype": "float32"})");
    tensors["model.embed_tokens.weight"] = {16, 32};
    tensors["model.norm.weight"] = {32};
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = "model.layers." + std::to_string(layer) + ".";
      tensors[at + "input_layernorm.weight"] = {32};
      tensors[at + "self_attn.q_proj.weight"] = {32, 32};
      tensors[at + "self_attn.k_proj.weight"] = {16, 32};
      tensors[at + "self_attn.v_proj.weight"] = {16, 32};
      tensors[at + "self_attn.o_proj.weight"] = {32, 32};
      tensors[at + "post_attention_layernorm.weight"] = {32};
      tensors[at + "mlp.gate_proj.weight"] = {48, 32};
      tensors[at + "mlp.up_proj.weight"] = {48, 32};
      tensors[at + "mlp.down_proj.weight"] = {32, 48};
    }
  }

  void writeWeights(const std::string &name,
                    const std::map<std::string, std::vector<int64_t>> &some) {
    auto writer = SafetensorsWriter::create(path(name));
    ASSERT_TRUE(bool(writer));
    for (const auto &[key, shape] : some) {
      size_t bytes = 4;
      for (int64_t size : shape)
        bytes *= size_t(size);
      Format format = Format::F32;
      for (const std::string &name : {key.substr(key.rfind('.') + 1), key})
        if (const auto found = formats.find(name); found != formats.end())
          format = found->second;
      bytes = bytes / 4 * sprig::quant::info(format).blockBytes;
      std::vector<std::byte> zeros(bytes);
      if (const auto found = values.find(key); found != values.end())
        std::memcpy(zeros.data(), found->second.data(), bytes);
      // A head that is not the embedding.
      if (key == "lm_head.weight")
        zeros[0] = std::byte(1);
      ASSERT_FALSE(bool((*writer)->add(key, format, shape, zeros)));
    }
    ASSERT_FALSE(bool((*writer)->finish()));
  }
  void writeConfig() { write("config.json", llvm::StringRef(config.dump())); }

  llvm::Expected<OwningOpRef<ModuleOp>> importFolder() {
    ImportOptions options;
    options.folder = folder.string();
    return importModel(&context, folder.string(), options);
  }
  /// Why it is refused; empty where it is not.
  std::string refusal() {
    writeConfig();
    writeWeights("model.safetensors", tensors);
    return messageOf(importFolder());
  }
  std::string refusalWith(const char *key, json value) {
    const json before = config;
    config[key] = std::move(value);
    std::string message = refusal();
    config = before;
    return message;
  }
  /// The IR; a refusal fails the test.
  std::string imported() {
    writeConfig();
    writeWeights("model.safetensors", tensors);
    llvm::Expected<OwningOpRef<ModuleOp>> read = importFolder();
    if (!read) {
      ADD_FAILURE() << llvm::toString(read.takeError());
      return "";
    }
    module = std::move(*read);
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  /// In place of each product of the layers, what GPTQ or AWQ split it into:
  /// four bits, groups of 16 columns.
  void quantise(bool awq) {
    std::map<std::string, std::vector<int64_t>> split;
    for (const auto &[key, shape] : tensors) {
      if (key.find("_proj.weight") == std::string::npos) {
        split[key] = shape;
        continue;
      }
      const std::string stem = key.substr(0, key.rfind('.') + 1);
      const int64_t N = shape[0], K = shape[1];
      split[stem + "qweight"] =
          awq ? std::vector<int64_t>{K, N / 8} : std::vector<int64_t>{K / 8, N};
      split[stem + "scales"] = {K / 16, N};
      split[stem + "qzeros"] = {K / 16, N / 8};
    }
    tensors = split;
    config["quantization_config"] = {{"quant_method", awq ? "awq" : "gptq"},
                                     {"bits", 4},
                                     {"group_size", 16}};
  }

  json config;
  std::map<std::string, std::vector<int64_t>> tensors;
  /// Of tensors by their names or the last part of them; others are F32.
  std::map<std::string, Format> formats{
      {"qweight", Format::I32},       {"qzeros", Format::I32},
      {"g_idx", Format::I32},         {"scales", Format::F16},
      {"weight_packed", Format::I32}, {"weight_shape", Format::I64}};
  std::map<std::string, std::vector<int32_t>> values; ///< of some of them
};

TEST_F(CheckpointTest, GPTQKeepsItsBits) {
  quantise(false);
  imported();
  ASSERT_EQ(all<AssembleOp>().size(), 14u);
  AssembleOp query = all<AssembleOp>().front();
  std::string type;
  llvm::raw_string_ostream(type) << query.getType();
  EXPECT_EQ(type,
            "tensor<32x32x!llm.q<u4, 16:f16 zero u4>, #llm.layout<gptq>>");
  EXPECT_TRUE(all<GatherOp>().empty());

  // Groups one after another say nothing; others order the columns, those of
  // inputs that are heads in the weight.
  const std::string layer = "model.layers.0.self_attn.";
  for (const char *name : {"q_proj.g_idx", "o_proj.g_idx"}) {
    tensors[layer + name] = {32};
    values[layer + name] = std::vector<int32_t>(32);
    for (int k = 0; k < 32; ++k)
      values[layer + name][size_t(k)] = k / 16;
  }
  imported();
  EXPECT_TRUE(all<GatherOp>().empty());
  for (const char *name : {"q_proj.g_idx", "o_proj.g_idx"})
    std::swap(values[layer + name][0], values[layer + name][31]);
  imported();
  ASSERT_EQ(all<GatherOp>().size(), 2u);
  EXPECT_TRUE(all<AssembleOp>().front().getOrder());
  EXPECT_TRUE(GatherOp(all<GatherOp>()[0]).getType().isDynamicDim(0));
  EXPECT_FALSE(GatherOp(all<GatherOp>()[1]).getType().isDynamicDim(0));
  values[layer + "q_proj.g_idx"][3] = 2;
  EXPECT_MESSAGE(refusal(), "to name groups below 2, but got 2");
}

TEST_F(CheckpointTest, AWQKeepsItsBits) {
  quantise(true);
  imported();
  std::string type;
  llvm::raw_string_ostream(type) << all<AssembleOp>().front().getType();
  EXPECT_EQ(type, "tensor<32x32x!llm.q<u4, 16:f16 zero u4>, #llm.layout<awq>>");
}

TEST_F(CheckpointTest, RefusesASchemeThatNoTensorHas) {
  for (const char *scheme :
       {R"({"quant_method": "gptq", "bits": 4, "group_size": 16})",
        R"({"quant_method": "awq", "bits": 4, "group_size": 16})",
        R"({"quant_method": "fp8"})"}) {
    config["quantization_config"] = json::parse(scheme);
    EXPECT_MESSAGE(refusal(), "expects weights that are quantised as "
                              "quantization_config says, but all are floats");
  }
}

TEST_F(CheckpointTest, RefusesSchemesByName) {
  quantise(false);
  const json before = config;
  const auto refused = [&](const char *key, json value) {
    config = before;
    config["quantization_config"][key] = std::move(value);
    return refusal();
  };
  EXPECT_MESSAGE(refused("quant_method", "bitsandbytes"),
                 "quantization_config.quant_method expects awq, "
                 "compressed-tensors, fp8 or gptq, but got 'bitsandbytes'");
  EXPECT_MESSAGE(refused("bits", 3), "expects one of 2, 4, 8 bits, but got 3");
  EXPECT_MESSAGE(refused("bits", 8),
                 "to be 8x32 by the metadata, but got 4x32");
  EXPECT_MESSAGE(refused("group_size", 32), "scales' to be 1x");
  EXPECT_MESSAGE(refused("checkpoint_format", "gptq_v2"),
                 "but got 'gptq_v2', which is not supported");
  EXPECT_MESSAGE(refused("dynamic", {{"+:x", 1}}),
                 "quantization_config.dynamic expects to be a key");

  // A promise of FP8 over other tensors, and FP8 without scales.
  config = before;
  config["quantization_config"] = json::parse(R"({
    "quant_method": "compressed-tensors", "format": "float-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
      "num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true}}}})");
  EXPECT_MESSAGE(refusal(),
                 "expects a tensor 'model.layers.0.self_attn.q_proj.weight'");
  const std::string stem = "model.layers.0.self_attn.q_proj.";
  tensors[stem + "weight_packed"] = {32, 4};
  EXPECT_MESSAGE(
      refusal(),
      "of type F8_E4M3 by quantization_config, but got packed integers");
  tensors.erase(stem + "weight_packed");
  tensors[stem + "weight"] = {32, 32};
  formats[stem + "weight"] = Format::F8E4M3;
  EXPECT_MESSAGE(refusal(), "q_proj.weight_scale' of shape 32x1, but got none");
  config["quantization_config"]["config_groups"]["group_0"]["weights"]
        ["strategy"] = "block";
  EXPECT_MESSAGE(refusal(), "config_groups.group_0.weights.block_structure "
                            "expects two whole numbers");
  config["quantization_config"]["config_groups"]["group_0"]["weights"]
        ["strategy"] = "attention_head";
  EXPECT_MESSAGE(refusal(), "expects block, channel, group or tensor, but got "
                            "'attention_head'");
}

TEST_F(CheckpointTest, ModuleNamesTheWeightsFile) {
  imported();
  auto source = module->lookupSymbol<SourceOp>("model");
  ASSERT_TRUE(source);
  EXPECT_EQ(*source.getPath(), "model.safetensors");
  EXPECT_EQ(*source.getFormat(), "safetensors");
  EXPECT_FALSE(module->lookupSymbol<TokenizerOp>("tokenizer"));
  EXPECT_FALSE(all<RopeOp>().front().getInterleaved());
  EXPECT_EQ(all<LinearOp>().back().getWeight(),
            all<EmbeddingOp>().front().getTable());
  write("tokenizer.json", llvm::StringRef("{}"));
  imported();
  EXPECT_TRUE(module->lookupSymbol<TokenizerOp>("tokenizer"));
}

TEST_F(CheckpointTest, OldAndNewSpellingMeanTheSame) {
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = json::parse(R"({"rope_type": "llama3", "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16})");
  const std::string old = imported();
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = config["rope_theta"];
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["dtype"] = config["torch_dtype"];
  config.erase("torch_dtype");
  EXPECT_EQ(imported(), old);
  EXPECT_TRUE(all<RopeOp>().front().getFrequencies());
}

TEST_F(CheckpointTest, LayersMaySayWhetherTheyHaveTheWindow) {
  config["model_type"] = "mistral";
  config["sliding_window"] = 16;
  imported();
  EXPECT_EQ(all<AttentionOp>()[0].getWindow().value_or(0), 16u);
  EXPECT_EQ(all<AttentionOp>()[1].getWindow().value_or(0), 16u);
  config["layer_types"] = {"full_attention", "sliding_attention"};
  imported();
  EXPECT_EQ(all<AttentionOp>()[0].getWindow().value_or(0), 0u);
  EXPECT_EQ(all<AttentionOp>()[1].getWindow().value_or(0), 16u);
  config["sliding_window"] = nullptr;
  EXPECT_MESSAGE(refusal(), "sliding_window expects the window of layer 1");
  config["layer_types"] = {"full_attention"};
  EXPECT_MESSAGE(refusal(), "layer_types expects one of 2 layers each");
  config["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_MESSAGE(refusal(), "but got 'linear_attention' for layer 1");
}

// LongRoPE: two sets of frequencies, chosen by the position.
TEST_F(CheckpointTest, LongRope) {
  config["model_type"] = "phi3";
  config["original_max_position_embeddings"] = 32;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", {1.0, 1.0, 1.0, 2.0}},
                            {"long_factor", {1.0, 2.0, 4.0, 8.0}}};
  imported();
  RopeOp rope = all<RopeOp>().front();
  EXPECT_EQ(*rope.getLongFrom(), 32u);
  EXPECT_FLOAT_EQ(rope.getAmplitude()->convertToFloat(),
                  float(std::sqrt(1 + std::log(4.0) / std::log(32.0))));
  auto weight = rope.getFrequencies().getDefiningOp<WeightOp>();
  EXPECT_EQ(cast<ShapedType>(weight.getType()).getShape(),
            ArrayRef<int64_t>({2, 4}));
  config["rope_scaling"]["long_factor"] = {1.0};
  EXPECT_MESSAGE(refusal(), "rope_scaling.long_factor expects 4 numbers");
}

TEST_F(CheckpointTest, HeadOfItsOwn) {
  config["tie_word_embeddings"] = false;
  EXPECT_MESSAGE(refusal(), "expects a tensor 'lm_head.weight'");
  tensors["lm_head.weight"] = {16, 32};
  imported();
  EXPECT_EQ(
      *all<LinearOp>().back().getWeight().getDefiningOp<WeightOp>().getKey(),
      "lm_head.weight");
  config["tie_word_embeddings"] = true;
  imported();
  EXPECT_EQ(
      *all<LinearOp>().back().getWeight().getDefiningOp<WeightOp>().getKey(),
      "lm_head.weight")
      << "a head that differs from the embedding counts";
}

TEST_F(CheckpointTest, NamesOfTheBareModel) {
  std::map<std::string, std::vector<int64_t>> bare;
  for (const auto &[key, shape] : tensors)
    bare[key.substr(std::string("model.").size())] = shape;
  tensors = bare;
  EXPECT_EQ(refusal(), "");
}

TEST_F(CheckpointTest, Shards) {
  writeConfig();
  std::map<std::string, std::vector<int64_t>> parts[2];
  json index;
  size_t at = 0;
  for (const auto &[key, shape] : tensors) {
    index["weight_map"][key] = at % 2 ? "b.safetensors" : "a.safetensors";
    parts[at++ % 2][key] = shape;
  }
  writeWeights("a.safetensors", parts[0]);
  writeWeights("b.safetensors", parts[1]);
  EXPECT_MESSAGE(messageOf(importFolder()),
                 "an index of the 2 .safetensors files");
  write("model.safetensors.index.json", llvm::StringRef(index.dump()));
  EXPECT_EQ(messageOf(importFolder()), "");
  std::filesystem::remove(folder / "b.safetensors");
  EXPECT_MESSAGE(messageOf(importFolder()), "b.safetensors");
  writeWeights("b.safetensors", parts[1]);
  index["weight_map"]["model.norm.weight"] = "../b.safetensors";
  write("model.safetensors.index.json", llvm::StringRef(index.dump()));
  EXPECT_MESSAGE(messageOf(importFolder()), "but got '../b.safetensors'");
}

TEST_F(CheckpointTest, RefusesFoldersWithoutWeights) {
  writeConfig();
  EXPECT_MESSAGE(messageOf(importFolder()),
                 "expects weights in model.safetensors, but got none");
  write("pytorch_model.bin", llvm::StringRef("x"));
  EXPECT_MESSAGE(messageOf(importFolder()), "PyTorch files alone");
}

TEST_F(CheckpointTest, RefusesByName) {
  EXPECT_MESSAGE(refusalWith("model_type", "mamba"),
                 "model_type expects one of");
  EXPECT_MESSAGE(refusalWith("model_type", "mamba"), "but got 'mamba'");
  EXPECT_MESSAGE(refusalWith("model_type", 3),
                 "model_type expects a text, but got 3");
  EXPECT_MESSAGE(
      refusalWith("architectures", {"LlamaForSequenceClassification"}),
      "predicts the next token");
  EXPECT_MESSAGE(refusalWith("hidden_act", "snake"),
                 "but got 'snake', which is not supported");
  EXPECT_MESSAGE(refusalWith("num_local_experts", 8),
                 "a mixture of experts is not supported");
  EXPECT_MESSAGE(refusalWith("clip_qkv", 8.0),
                 "clamping of queries, keys and values");
  EXPECT_MESSAGE(
      refusalWith("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}),
      "rope_scaling.rope_type expects default, linear, llama3, longrope or "
      "yarn, but got 'dynamic'");
  EXPECT_MESSAGE(
      refusalWith("new_trick", 1.5),
      "new_trick expects to be a key that this importer knows, but got 1.5");
  EXPECT_EQ(refusalWith("new_trick", false), "");
  EXPECT_EQ(refusalWith("_new_trick", 1), "");
}

TEST_F(CheckpointTest, RefusesValuesOfAnotherTypeOrRange) {
  EXPECT_MESSAGE(
      refusalWith("hidden_size", {32, 32}),
      "hidden_size expects a whole number from 1 to 16777216, but got [32,32]");
  EXPECT_MESSAGE(refusalWith("hidden_size", 0), "but got 0");
  EXPECT_MESSAGE(refusalWith("hidden_size", 1e30),
                 "hidden_size expects a whole number");
  EXPECT_MESSAGE(refusalWith("num_hidden_layers", 100000),
                 "expects at most 4096 layers");
  EXPECT_MESSAGE(refusalWith("num_key_value_heads", 3),
                 "expects a divisor of the 4 heads, but got 3");
  EXPECT_MESSAGE(refusalWith("num_attention_heads", 6), "num_");
  EXPECT_MESSAGE(refusalWith("rms_norm_eps", "small"),
                 "rms_norm_eps expects a finite number");
  EXPECT_MESSAGE(refusalWith("tie_word_embeddings", "yes"),
                 "tie_word_embeddings expects true or false");
  EXPECT_MESSAGE(refusalWith("vocab_size", nullptr),
                 "vocab_size expects a value, but got none");
  EXPECT_MESSAGE(refusalWith("partial_rotary_factor", 0.4),
                 "expects to choose an even number");
  writeWeights("model.safetensors", tensors);
  write("config.json", llvm::StringRef("{\"model_type\": "));
  EXPECT_MESSAGE(messageOf(importFolder()),
                 "expects a JSON object, but got no valid JSON");
  write("config.json", llvm::StringRef("[]"));
  EXPECT_MESSAGE(messageOf(importFolder()),
                 "expects a JSON object, but got array");
}

TEST_F(CheckpointTest, RefusesTensorsThatDoNotFit) {
  tensors["model.layers.0.self_attn.q_norm.weight"] = {8};
  EXPECT_MESSAGE(refusal(),
                 "but got 1 more: model.layers.0.self_attn.q_norm.weight");
  tensors.erase("model.layers.0.self_attn.q_norm.weight");
  tensors["model.layers.1.mlp.up_proj.weight"] = {32, 48};
  EXPECT_MESSAGE(refusal(), "to be 48x32 by the metadata, but got 32x48");
  tensors["model.layers.1.mlp.up_proj.weight"] = {48, 32};
  config["attention_bias"] = true;
  EXPECT_MESSAGE(refusal(),
                 "expects a tensor 'model.layers.0.self_attn.q_proj.bias'");
  config["attention_bias"] = false;
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {4};
  EXPECT_EQ(refusal(), "") << "nobody reads these";
}

} // namespace
