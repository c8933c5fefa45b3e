#include "test/lib/Weights/TinyLlama.h"
#include "lib/Weights/GGUFWriter.h"
#include "test/lib/Weights/TinyVocabulary.h"

#include <cmath>

namespace mlir::llm::testing {

using sprig::quant::Format;

namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere, which the
/// distributions of the standard library do not promise.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  /// In [0, 1), a multiple of 2^-24.
  float uniform() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
  }
  /// Bell-shaped, mean 0 and variance 1, by the sum of four uniforms.
  float normal() {
    const float sum = uniform() + uniform() + uniform() + uniform();
    return (sum - 2) * 1.7320508f;
  }

private:
  uint64_t state;
};

class Builder {
public:
  Builder(GGUFWriter &writer, const TinyLlamaOptions &options)
      : writer(writer), options(options), random(options.seed) {}

  llvm::Error tensors() {
    const TinyLlamaOptions &o = options;
    const int64_t V = kTinyVocabulary + o.paddingTokens;
    // Rows of this size give logits with a spread of about 4.
    add("token_embd.weight", o.embedding, {V, o.D}, 0, 0.5f);
    if (o.ropeFactors)
      add("rope_freqs.weight", Format::F32, {o.E / 2}, 2, 0.25f);
    for (int64_t layer = 0; layer < o.L; ++layer) {
      const std::string blk = "blk." + std::to_string(layer) + ".";
      norm(blk + "attn_norm");
      matrix(blk + "attn_q", o.H * o.E, o.D, o.biases);
      matrix(blk + "attn_k", o.G * o.E, o.D, o.biases);
      matrix(blk + "attn_v", o.G * o.E, o.D, o.biases);
      matrix(blk + "attn_output", o.D, o.H * o.E, o.biases);
      norm(blk + "ffn_norm");
      matrix(blk + "ffn_gate", o.F, o.D, false);
      matrix(blk + "ffn_up", o.F, o.D, false);
      matrix(blk + "ffn_down", o.D, o.F, false);
    }
    norm("output_norm");
    if (o.separateOutput)
      add("output.weight", nextFormat(), {V, o.D}, 0, 0.5f);
    return std::move(failure);
  }

private:
  void norm(const std::string &name) {
    add(name + ".weight", Format::F32, {options.D}, 1, 0.1f);
  }

  void matrix(const std::string &name, int64_t N, int64_t K, bool bias) {
    add(name + ".weight", nextFormat(), {N, K}, 0,
        1.5f / std::sqrt(static_cast<float>(K)));
    if (bias)
      add(name + ".bias", Format::F32, {N}, 0, 0.2f);
  }

  Format nextFormat() {
    return options.matrices[next++ % options.matrices.size()];
  }

  void add(llvm::StringRef name, Format format, llvm::ArrayRef<int64_t> shape,
           float mean, float deviation) {
    if (failure)
      return;
    size_t count = 1;
    for (int64_t size : shape)
      count *= size_t(size);
    std::vector<float> numbers(count);
    for (float &number : numbers)
      number = mean + deviation * random.normal();
    failure = writer.addTensor(name, format, shape, numbers);
  }

  GGUFWriter &writer;
  const TinyLlamaOptions &options;
  Random random;
  size_t next = 0;
  llvm::Error failure = llvm::Error::success();
};

void addMetadata(GGUFWriter &writer, const TinyLlamaOptions &options) {
  writer.add("general.architecture", "llama");
  writer.add("general.type", "model");
  writer.add("general.name",
             "Tiny llama of seed " + std::to_string(options.seed));
  writer.add("general.quantization_version", uint32_t(2));
  writer.add("llama.block_count", uint32_t(options.L));
  writer.add("llama.context_length", uint32_t(options.context));
  writer.add("llama.embedding_length", uint32_t(options.D));
  writer.add("llama.feed_forward_length", uint32_t(options.F));
  writer.add("llama.attention.head_count", uint32_t(options.H));
  writer.add("llama.attention.head_count_kv", uint32_t(options.G));
  if (options.E * options.H != options.D) {
    writer.add("llama.attention.key_length", uint32_t(options.E));
    writer.add("llama.attention.value_length", uint32_t(options.E));
  }
  writer.add("llama.attention.layer_norm_rms_epsilon",
             static_cast<float>(options.epsilon));
  writer.add("llama.rope.freq_base", static_cast<float>(options.ropeBase));
  writer.add("llama.rope.dimension_count", uint32_t(options.E));
  writer.add("llama.vocab_size",
             uint32_t(kTinyVocabulary + options.paddingTokens));
  addTinyVocabulary(writer, size_t(options.paddingTokens));
}

} // namespace

llvm::ArrayRef<llvm::StringLiteral> tinyLlamaVariants() {
  static constexpr llvm::StringLiteral kNames[] = {
      "default",      "head-dim",   "biases", "output", "q8_0",
      "q4_0",         "f16",        "f32",    "mixed",  "k-quants",
      "rope-factors", "odd-groups", "padded"};
  return kNames;
}

std::optional<TinyLlamaOptions> tinyLlamaVariant(llvm::StringRef name) {
  TinyLlamaOptions options;
  const auto all = [&](Format format) {
    options.embedding = format;
    options.matrices = {format};
  };
  if (name == "default")
    return options;
  if (name == "head-dim") {
    options.E = 24; // H * E = 96, and not a power of two
  } else if (name == "biases") {
    options.biases = true;
  } else if (name == "output") {
    options.separateOutput = true;
    options.matrices = {Format::Q4_1, Format::Q8_0};
  } else if (name == "q8_0") {
    all(Format::Q8_0);
  } else if (name == "q4_0") {
    all(Format::Q4_0);
  } else if (name == "f16") {
    all(Format::F16);
  } else if (name == "f32") {
    all(Format::F32);
  } else if (name == "mixed") {
    options.E = 24;
    options.biases = options.separateOutput = true;
    options.matrices = {Format::Q4_1, Format::Q8_0, Format::Q4_0, Format::F16,
                        Format::F32,  Format::Q5_0, Format::BF16, Format::Q5_1};
  } else if (name == "k-quants") {
    options.D = 256;
    options.H = 8;
    options.E = 32;
    options.F = 512;
    options.embedding = Format::Q6_K;
    options.matrices = {Format::Q4_K, Format::Q6_K, Format::Q5_K};
  } else if (name == "rope-factors") {
    options.ropeFactors = true;
  } else if (name == "odd-groups") {
    options.D = 288;
    options.H = 9;
    options.G = 3;
    options.E = 32;
  } else if (name == "small-heads") {
    options.H = 16;
    options.E = 4;
    options.G = 4;
    all(Format::F32);
  } else if (name == "padded") {
    options.paddingTokens = 32;
  } else if (name == "8b-q4_k" || name == "8b-q8_0") {
    // Not tiny: two layers of the shape of an 8-billion-parameter model.
    options.D = 4096;
    options.H = 32;
    options.G = 8;
    options.E = 128;
    options.F = 14336;
    options.ropeBase = 500000;
    options.paddingTokens = 128256 - kTinyVocabulary;
    options.matrices = {name == "8b-q4_k" ? Format::Q4_K : Format::Q8_0};
  } else {
    return std::nullopt;
  }
  return options;
}

llvm::Error writeTinyLlama(llvm::StringRef path,
                           const TinyLlamaOptions &options) {
  GGUFWriter writer(options.version, options.alignment);
  addMetadata(writer, options);
  if (llvm::Error error = Builder(writer, options).tensors())
    return error;
  return writer.write(path);
}

} // namespace mlir::llm::testing
