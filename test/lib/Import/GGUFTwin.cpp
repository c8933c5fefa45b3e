// A Hugging Face folder as the GGUF file that llama.cpp's converter would make of it.
#include "lib/Weights/GGUFWriter.h"
#include "lib/Weights/WeightSource.h"
#include "test/lib/Import/TinyCheckpoint.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

namespace mlir::llm::testing {

using nlohmann::json;
using sprig::quant::Format;

namespace {

class Converter {
public:
  Converter(const json &config, const WeightSource &source) : config(config), source(source) {
    const auto type = config["model_type"].get<std::string>();
    static const std::map<std::string, std::string> kArchitectures = {
        {"mistral", "llama"}, {"mixtral", "llama"}, {"gemma3_text", "gemma3"}, {"qwen3_moe", "qwen3moe"}, {"qwen2_moe", "qwen2moe"},
        {"deepseek_v2", "deepseek2"}, {"deepseek_v3", "deepseek2"}};
    const auto known = kArchitectures.find(type);
    family = known == kArchitectures.end() ? type : known->second;
    sandwich = family.starts_with("gemma") || family == "olmo2";
    // Only these turn neighbours of a head together.
    interleaved = family == "llama" || family == "granite" || family == "smollm3" || family == "minicpm";
    heads = config["num_attention_heads"];
    kvHeads = config["num_key_value_heads"];
    headSize = config.value("head_dim", config["hidden_size"].get<uint32_t>() / heads);
    latent = config.value("kv_lora_rank", 0u);
    // What files hold since llama.cpp keeps the latent in its cache; earlier ones hold keys and values as one.
    absorbed = type == "deepseek_v3";
  }

  llvm::Error write(llvm::StringRef path) {
    writeSizes();
    writeRope();
    writeScales();
    for (const WeightTensor &tensor : source.tensors())
      if (llvm::Error error = writeTensor(tensor))
        return error;
    return writer.write(path);
  }

private:
  std::string key(const char *name) const { return family + "." + name; }
  bool has(const char *name) const { return config.contains(name) && !config[name].is_null(); }
  void size(const char *name, const char *from) {
    if (has(from))
      writer.add(key(name), config[from].get<uint32_t>());
  }
  void real(const char *name, const char *from) {
    if (has(from))
      writer.add(key(name), config[from].get<float>());
  }

  void writeSizes() {
    writer.add("general.architecture", family);
    size("vocab_size", "vocab_size");
    size("context_length", "max_position_embeddings");
    size("embedding_length", "hidden_size");
    size("block_count", "num_hidden_layers");
    size("feed_forward_length", "intermediate_size");
    size("expert_feed_forward_length", "moe_intermediate_size");
    size("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
    size("expert_count", has("num_experts")         ? "num_experts"
                         : has("n_routed_experts") ? "n_routed_experts"
                                                   : "num_local_experts");
    size("expert_used_count", "num_experts_per_tok");
    writer.add(key("attention.head_count"), heads);
    writer.add(key("attention.head_count_kv"), absorbed ? 1u : kvHeads);
    if (latent) {
      writeLatents();
    } else {
      writer.add(key("attention.key_length"), headSize);
      writer.add(key("attention.value_length"), headSize);
    }
    real("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    real("attention.layer_norm_epsilon", "layer_norm_eps");
    if (!has("sliding_window"))
      return;
    size("attention.sliding_window", "sliding_window");
    std::vector<uint32_t> windowed;
    if (has("layer_types"))
      for (const json &type : config["layer_types"])
        windowed.push_back(type == "sliding_attention");
    if (!windowed.empty())
      writer.addArray<uint32_t>(key("attention.sliding_window_pattern"), windowed);
  }

  /// Latent attention, and what else only DeepSeek's files have.
  void writeLatents() {
    size("attention.q_lora_rank", "q_lora_rank");
    size("attention.kv_lora_rank", "kv_lora_rank");
    const auto rotated = config["qk_rope_head_dim"].get<uint32_t>(), values = config["v_head_dim"].get<uint32_t>();
    const uint32_t keys = config["qk_nope_head_dim"].get<uint32_t>() + rotated;
    writer.add(key("attention.key_length"), absorbed ? latent + rotated : keys);
    writer.add(key("attention.value_length"), absorbed ? latent : values);
    if (absorbed) {
      writer.add(key("attention.key_length_mla"), keys);
      writer.add(key("attention.value_length_mla"), values);
    }
    size("leading_dense_block_count", "first_k_dense_replace");
    size("expert_shared_count", "n_shared_experts");
    real("expert_weights_scale", "routed_scaling_factor");
    writer.add(key("expert_gating_func"), absorbed ? 2u : 1u);
    if (absorbed)
      writer.add(key("expert_weights_norm"), config["norm_topk_prob"].get<bool>());
    if (!absorbed && config.value("topk_method", "") != "group_limited_greedy")
      return;
    size("expert_group_count", "n_group");
    size("expert_group_used_count", "topk_group");
  }

  void writeRope() {
    const json usual = {{"rope_theta", 10000.0}};
    const json &all = has("rope_parameters") ? config["rope_parameters"] : usual;
    const json &rope = all.contains("full_attention") ? all["full_attention"] : all;
    const auto theta = rope["rope_theta"].get<float>();
    writer.add(key("rope.freq_base"), theta);
    if (all.contains("sliding_attention"))
      writer.add(key("rope.freq_base_swa"), all["sliding_attention"]["rope_theta"].get<float>());
    writer.add(key("rope.dimension_count"), uint32_t(headSize * rope.value("partial_rotary_factor", 1.0)));
    const auto type = rope.value("rope_type", "default");
    if (type == "linear" || type == "yarn") {
      writer.add(key("rope.scaling.type"), type);
      writer.add(key("rope.scaling.factor"), rope["factor"].get<float>());
      if (type == "yarn")
        writer.add(key("rope.scaling.original_context_length"),
                   rope["original_max_position_embeddings"].get<uint32_t>());
      if (latent)
        writer.add(key("rope.scaling.yarn_log_multiplier"), float(0.1 * rope["mscale_all_dim"].get<double>()));
    }
    if (type == "longrope")
      writeLongRope(rope);
    std::vector<float> factors;
    if (type == "llama3")
      factors = llama3Factors(rope);
    else if (config.contains("dtype") && config["dtype"].is_null() && source.tensors().front().format == Format::BF16)
      factors = bf16Factors(theta);
    if (!factors.empty())
      (void)!bool(writer.addTensor("rope_freqs.weight", Format::F32, {int64_t(factors.size())}, factors));
  }

  /// Divisors of both sets are tensors, and what vectors are multiplied by is a key.
  void writeLongRope(const json &rope) {
    const double original = rope["original_max_position_embeddings"];
    const double factor = config["max_position_embeddings"].get<double>() / original;
    writer.add(key("rope.scaling.original_context_length"), uint32_t(original));
    writer.add(key("rope.scaling.attn_factor"),
               float(factor > 1 ? std::sqrt(1 + std::log(factor) / std::log(original)) : 1.0));
    for (const char *set : {"long", "short"}) {
      const auto divisors = rope[std::string(set) + "_factor"].get<std::vector<float>>();
      (void)!bool(writer.addTensor(std::string("rope_factors_") + set + ".weight", Format::F32,
                                   {int64_t(divisors.size())}, divisors));
    }
  }

  /// Llama 3 divides the frequencies of long waves, keeps those of short ones, and ramps between.
  std::vector<float> llama3Factors(const json &rope) const {
    const double base = rope["rope_theta"], factor = rope["factor"];
    const double low = rope["low_freq_factor"], high = rope["high_freq_factor"];
    const double context = rope["original_max_position_embeddings"];
    std::vector<float> factors;
    for (double i = 0; i < headSize; i += 2) {
      const double wave = 2 * std::numbers::pi * std::pow(base, i / headSize);
      const double smooth = std::clamp((context / wave - low) / (high - low), 0.0, 1.0);
      factors.push_back(float(1 / ((1 - smooth) / factor + smooth)));
    }
    return factors;
  }

  /// A model that went through BF16 as a whole has its table of frequencies rounded (that moves its last logits by
  /// 2e-3). These divisors round them in the same way.
  std::vector<float> bf16Factors(double base) const {
    std::vector<float> factors;
    for (double i = 0; i < headSize; i += 2) {
      const float trained = float(std::pow(base, -i / headSize));
      std::byte stored[2];
      float rounded;
      (void)sprig::quant::encode(Format::BF16, &trained, stored, 1);
      sprig::quant::decode(Format::BF16, stored, &rounded, 1);
      factors.push_back(trained / rounded);
    }
    return factors;
  }

  void writeScales() {
    if (family == "minicpm") {
      real("embedding_scale", "scale_emb");
      writer.add(key("residual_scale"),
                 float(config["scale_depth"].get<double>() / std::sqrt(config["num_hidden_layers"].get<double>())));
      writer.add(key("logit_scale"), float(config["hidden_size"].get<double>() / config["dim_model_base"].get<double>()));
    }
    real("embedding_scale", "embedding_multiplier");
    real("residual_scale", "residual_multiplier");
    real("logit_scale", "logits_scaling");
    real("attention.scale", "attention_multiplier");
    real("attn_logit_softcapping", "attn_logit_softcapping");
    real("final_logit_softcapping", "final_logit_softcapping");
  }

  /// The name of a tensor without its `.weight` or `.bias`.
  std::string nameOf(llvm::StringRef stem) const {
    if (stem == "model.embed_tokens")
      return "token_embd";
    if (stem == "model.norm")
      return "output_norm";
    if (stem == "lm_head")
      return "output";
    stem.consume_front("model.layers.");
    const auto [layer, rest] = stem.split('.');
    static const std::map<std::string, std::string> kNames = {{"input_layernorm", "attn_norm"},
                                                              {"self_attn.q_proj", "attn_q"},
                                                              {"self_attn.k_proj", "attn_k"},
                                                              {"self_attn.v_proj", "attn_v"},
                                                              {"self_attn.qkv_proj", "attn_qkv"},
                                                              {"self_attn.o_proj", "attn_output"},
                                                              {"self_attn.q_norm", "attn_q_norm"},
                                                              {"self_attn.k_norm", "attn_k_norm"},
                                                              {"pre_feedforward_layernorm", "ffn_norm"},
                                                              {"post_feedforward_layernorm", "post_ffw_norm"},
                                                              {"mlp.gate_proj", "ffn_gate"},
                                                              {"mlp.up_proj", "ffn_up"},
                                                              {"mlp.down_proj", "ffn_down"},
                                                              {"mlp.gate_up_proj", "ffn_up"},
                                                              {"self_attn.q_a_proj", "attn_q_a"},
                                                              {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                                              {"self_attn.q_b_proj", "attn_q_b"},
                                                              {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                                              {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                                              {"self_attn.kv_b_proj", "attn_kv_b"},
                                                              {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                                              {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                                              {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                                                              {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                                              {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                                              {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                                              {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                                                              {"mlp.gate", "ffn_gate_inp"},
                                                              {"mlp.experts.down_proj", "ffn_down_exps"}};
    const auto known = kNames.find(rest.str());
    const std::string name = rest == "post_attention_layernorm" ? (sandwich ? "post_attention_norm" : "ffn_norm")
                             : known == kNames.end()            ? rest.str()
                                                                : known->second;
    return "blk." + layer.str() + "." + name;
  }

  llvm::Error writeTensor(const WeightTensor &tensor) {
    llvm::StringRef stem = tensor.key;
    const bool bias = stem.consume_back(".bias");
    const auto layerOf = [&] { return "blk." + stem.split("layers.").second.split('.').first.str() + "."; };
    if (stem.consume_back(".gate.e_score_correction_bias")) {
      writer.addTensor(layerOf() + "exp_probs_b.bias", tensor.format, tensor.shape,
                       std::vector<std::byte>(tensor.data.begin(), tensor.data.end()));
      return llvm::Error::success();
    }
    if (absorbed && stem.consume_back(".weight") && stem.ends_with("kv_b_proj"))
      return writeAbsorbed(tensor, layerOf());
    stem.consume_back(".weight");
    const std::string name = nameOf(stem) + (bias ? ".bias" : ".weight");
    std::vector<std::byte> bytes(tensor.data.begin(), tensor.data.end());
    if (family.starts_with("gemma") && stem.ends_with("norm")) { // stored whole, not less one
      std::vector<float> numbers(size_t(tensor.elements()));
      sprig::quant::decode(tensor.format, tensor.data.data(), numbers.data(), numbers.size());
      for (float &number : numbers)
        number += 1;
      return writer.addTensor(name, Format::F32, tensor.shape, numbers);
    }
    if (stem.ends_with("experts.gate_up_proj")) {
      for (const auto [half, part] : {std::pair(0, "ffn_gate_exps"), std::pair(1, "ffn_up_exps")})
        writeHalf(tensor, half, layerOf() + part + ".weight");
      return llvm::Error::success();
    }
    if (interleaved && (stem.ends_with("q_proj") || stem.ends_with("k_proj")))
      bytes = interleaveHeads(tensor, stem.ends_with("q_proj") ? heads : kvHeads);
    std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    if (stem.ends_with("shared_expert_gate")) // its one row is a vector
      shape.erase(shape.begin());
    writer.addTensor(name, tensor.format, shape, std::move(bytes));
    return llvm::Error::success();
  }

  /// Half of the rows of each expert.
  void writeHalf(const WeightTensor &tensor, int64_t half, const std::string &name) {
    const int64_t X = tensor.shape[0], F = tensor.shape[1] / 2, D = tensor.shape[2];
    const size_t size = tensor.data.size() / size_t(2 * X);
    std::vector<std::byte> bytes;
    for (int64_t expert = 0; expert < X; ++expert) {
      const auto part = tensor.data.subspan(size_t(2 * expert + half) * size, size);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    writer.addTensor(name, tensor.format, {X, F, D}, std::move(bytes));
  }

  /// The rows of Q and K: in a checkpoint component `i` of a head turns with `i + E/2`, in GGUF the two are neighbours.
  std::vector<std::byte> interleaveHeads(const WeightTensor &tensor, int64_t heads) const {
    const int64_t E = tensor.shape[0] / heads;
    const size_t row = tensor.data.size() / size_t(tensor.shape[0]);
    std::vector<std::byte> bytes(tensor.data.size());
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t pair = 0; pair < E / 2; ++pair)
        for (int64_t half = 0; half < 2; ++half)
          std::copy_n(tensor.data.begin() + (head * E + half * E / 2 + pair) * int64_t(row), row,
                      bytes.begin() + (head * E + 2 * pair + half) * int64_t(row));
    return bytes;
  }

  /// Keys of each head turned, and values, from the rows of both, a head after the other.
  llvm::Error writeAbsorbed(const WeightTensor &tensor, const std::string &layer) {
    const int64_t E = tensor.shape[0] / heads, K = tensor.shape[1], H = heads;
    const int64_t own = config["qk_nope_head_dim"].get<int64_t>();
    std::vector<float> all(size_t(tensor.elements())), keys, values;
    sprig::quant::decode(tensor.format, tensor.data.data(), all.data(), all.size());
    for (int64_t head = 0; head < H; ++head) {
      const float *first = all.data() + head * E * K;
      for (int64_t column = 0; column < K; ++column)
        for (int64_t row = 0; row < own; ++row)
          keys.push_back(first[row * K + column]);
      values.insert(values.end(), first + own * K, first + E * K);
    }
    if (llvm::Error error = writer.addTensor(layer + "attn_k_b.weight", Format::F32, {H, K, own}, keys))
      return error;
    return writer.addTensor(layer + "attn_v_b.weight", Format::F32, {H, E - own, K}, values);
  }

  const json &config;
  const WeightSource &source;
  std::string family;
  bool sandwich = false, interleaved = false, absorbed = false;
  uint32_t heads = 0, kvHeads = 0, headSize = 0, latent = 0;
  GGUFWriter writer;
};

} // namespace

llvm::Error convertToGGUF(llvm::StringRef folder, llvm::StringRef path) {
  std::ifstream stream((folder + "/config.json").str());
  const json config = json::parse(stream, nullptr, false);
  if (!config.is_object())
    return llvm::createStringError("no config.json in " + folder);
  llvm::Expected<std::unique_ptr<WeightSource>> source = openWeightSource((folder + "/model.safetensors").str());
  if (!source)
    return source.takeError();
  return Converter(config, **source).write(path);
}

} // namespace mlir::llm::testing
