#include "test/lib/Import/TinyCheckpoint.h"
#include "lib/Weights/GGUFWriter.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <numbers>

namespace mlir::llm::testing {

namespace json = llvm::json;

static llvm::Expected<json::Object> readObject(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::errorCodeToError(buffer.getError());
  llvm::Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return value.takeError();
  return std::move(*value->getAsObject());
}

template <typename T> static std::vector<T> numbers(const json::Object &object, llvm::StringRef key) {
  std::vector<T> list;
  const json::Array *array = object.getArray(key);
  if (!array) // quantised checkpoints have no logits of the first token
    return list;
  for (const json::Value &value : *array)
    list.push_back(T(*value.getAsNumber()));
  return list;
}

llvm::Expected<ExpectedLogits> readExpectedLogits(llvm::StringRef folder) {
  llvm::Expected<json::Object> object = readObject(folder + "/expected.json");
  if (!object)
    return object.takeError();
  return ExpectedLogits{numbers<int32_t>(*object, "tokens"), numbers<double>(*object, "logits_first"),
                        numbers<double>(*object, "logits_last"), numbers<int32_t>(*object, "argmax")};
}

/// Names of tensors in a checkpoint, and in GGUF.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kNames[] = {
    {"input_layernorm", "attn_norm"},     {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},       {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},  {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},        {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

static std::string ggufName(llvm::StringRef key) {
  if (key == "model.embed_tokens.weight")
    return "token_embd.weight";
  if (key == "model.norm.weight")
    return "output_norm.weight";
  if (key == "lm_head.weight")
    return "output.weight";
  key.consume_front("model.layers.");
  const auto [layer, rest] = key.split('.');
  const auto [stem, kind] = rest.rsplit('.');
  for (const auto &[ours, theirs] : kNames)
    if (stem == ours)
      return ("blk." + layer + "." + theirs + "." + kind).str();
  return "";
}

/// The rows of Q and K: in a checkpoint component `i` of a head turns with `i + E/2`, in GGUF the two are neighbours.
static std::vector<std::byte> interleaveHeads(const WeightTensor &tensor, int64_t heads) {
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

/// Llama 3 divides the frequencies of long waves, keeps those of short ones, and ramps between ("llama3" of the
/// transformers library).
static std::vector<float> llama3Factors(const json::Object &rope, double E) {
  const double base = *rope.getNumber("rope_theta"), factor = *rope.getNumber("factor");
  const double low = *rope.getNumber("low_freq_factor"), high = *rope.getNumber("high_freq_factor");
  const double context = *rope.getNumber("original_max_position_embeddings");
  std::vector<float> factors;
  for (double i = 0; i < E; i += 2) {
    const double wave = 2 * std::numbers::pi * std::pow(base, i / E);
    const double smooth = std::clamp((context / wave - low) / (high - low), 0.0, 1.0);
    factors.push_back(float(1 / ((1 - smooth) / factor + smooth)));
  }
  return factors;
}

/// The expectation of the BF16 checkpoint was computed by a model that went through BF16 as a whole, its table of RoPE
/// frequencies included (that moves its last logits by 2e-3). These divisors round the frequencies in the same way.
static std::vector<float> bf16Factors(double base, double E) {
  std::vector<float> factors;
  for (double i = 0; i < E; i += 2) {
    const float trained = float(std::pow(base, -i / E));
    std::byte stored[2];
    float rounded;
    (void)sprig::quant::encode(sprig::quant::Format::BF16, &trained, stored, 1);
    sprig::quant::decode(sprig::quant::Format::BF16, stored, &rounded, 1);
    factors.push_back(trained / rounded);
  }
  return factors;
}

llvm::Error convertToGGUF(llvm::StringRef folder, llvm::StringRef path) {
  llvm::Expected<json::Object> config = readObject(folder + "/config.json");
  if (!config)
    return config.takeError();
  llvm::Expected<std::unique_ptr<WeightSource>> source = openWeightSource((folder + "/model.safetensors").str());
  if (!source)
    return source.takeError();
  const auto size = [&](llvm::StringRef key) { return uint32_t(*config->getInteger(key)); };
  const json::Object &rope = *config->getObject("rope_parameters");

  GGUFWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("llama.vocab_size", size("vocab_size"));
  writer.add("llama.context_length", size("max_position_embeddings"));
  writer.add("llama.embedding_length", size("hidden_size"));
  writer.add("llama.block_count", size("num_hidden_layers"));
  writer.add("llama.feed_forward_length", size("intermediate_size"));
  writer.add("llama.attention.head_count", size("num_attention_heads"));
  writer.add("llama.attention.head_count_kv", size("num_key_value_heads"));
  writer.add("llama.attention.key_length", size("head_dim"));
  writer.add("llama.attention.value_length", size("head_dim"));
  writer.add("llama.rope.dimension_count", size("head_dim"));
  writer.add("llama.rope.freq_base", float(*rope.getNumber("rope_theta")));
  writer.add("llama.attention.layer_norm_rms_epsilon", float(*config->getNumber("rms_norm_eps")));
  if (config->getInteger("sliding_window"))
    writer.add("llama.attention.sliding_window", size("sliding_window"));

  std::vector<float> factors;
  if (rope.getString("rope_type") == "llama3")
    factors = llama3Factors(rope, size("head_dim"));
  else if ((*source)->tensors().front().format == sprig::quant::Format::BF16)
    factors = bf16Factors(*rope.getNumber("rope_theta"), size("head_dim"));
  if (!factors.empty()) {
    if (llvm::Error error = writer.addTensor("rope_freqs.weight", sprig::quant::Format::F32,
                                             {int64_t(factors.size())}, factors))
      return error;
  }
  for (const WeightTensor &tensor : (*source)->tensors()) {
    std::vector<std::byte> bytes(tensor.data.begin(), tensor.data.end());
    if (tensor.key.contains("q_proj"))
      bytes = interleaveHeads(tensor, size("num_attention_heads"));
    else if (tensor.key.contains("k_proj"))
      bytes = interleaveHeads(tensor, size("num_key_value_heads"));
    writer.addTensor(ggufName(tensor.key), tensor.format, tensor.shape, std::move(bytes));
  }
  return writer.write(path);
}

} // namespace mlir::llm::testing
