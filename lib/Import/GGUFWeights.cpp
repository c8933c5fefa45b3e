// Names of tensors in GGUF files. They are the same for every family.
#include "lib/Import/ModelWeights.h"

using namespace mlir::llm;
using llvm::Twine;

static void findAttention(const ModelConfig &config, const LayerConfig &layer, const std::string &block,
                          TensorTable &tensors, LayerWeights &weights) {
  if (layer.heads == 0)
    return;
  weights.attentionNorm = tensors.takeVector(block + "attn_norm.weight", config.width);
  weights.q = tensors.takeLinear(block + "attn_q", layer.heads * config.keySize, config.width);
  weights.k = tensors.takeLinear(block + "attn_k", layer.kvHeads * config.keySize, config.width);
  weights.v = tensors.takeLinear(block + "attn_v", layer.kvHeads * config.valueSize, config.width);
  weights.o = tensors.takeLinear(block + "attn_output", config.width, layer.heads * config.valueSize);
}

static void findFeedForward(const ModelConfig &config, const LayerConfig &layer, const std::string &block,
                            TensorTable &tensors, LayerWeights &weights) {
  if (layer.feedForward == 0)
    return;
  weights.feedForwardNorm = tensors.takeVector(block + "ffn_norm.weight", config.width);
  weights.gate = tensors.takeLinear(block + "ffn_gate", layer.feedForward, config.width);
  weights.up = tensors.takeLinear(block + "ffn_up", layer.feedForward, config.width);
  weights.down = tensors.takeLinear(block + "ffn_down", config.width, layer.feedForward);
}

llvm::Expected<ModelWeights> mlir::llm::findGGUFWeights(const ModelConfig &config, const WeightSource &source) {
  TensorTable tensors(source);
  ModelWeights weights;
  weights.embedding = tensors.take("token_embd.weight", {config.vocabulary, config.width});
  weights.outputNorm = tensors.takeVector("output_norm.weight", config.width);
  weights.output.weight = tensors.takeOptional("output.weight", {config.vocabulary, config.width});
  if (!weights.output.weight) // tied: the head is the embedding
    weights.output.weight = weights.embedding;
  weights.output.bias = tensors.takeOptionalVector("output.bias", config.vocabulary);
  weights.ropeFactors = tensors.takeOptionalVector("rope_freqs.weight", config.rope.dimensions / 2);
  for (const auto [index, layer] : llvm::enumerate(config.layers)) {
    const std::string block = ("blk." + Twine(index) + ".").str();
    LayerWeights &found = weights.layers.emplace_back();
    findAttention(config, layer, block, tensors, found);
    findFeedForward(config, layer, block, tensors, found);
    tensors.ignore(block + "attn_rot_embd.weight"); // inverse frequencies of early converters
  }
  if (llvm::Error error = tensors.finish(config.architecture))
    return error;
  return weights;
}
