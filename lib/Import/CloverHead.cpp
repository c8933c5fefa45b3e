#include "lib/Import/CloverHead.h"

using namespace mlir;
using namespace mlir::llm;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

bool mlir::llm::isCloverHead(const WeightSource &source) {
  return source.find("clover_norm.weight") ||
         source.find("clover_head_norm.weight");
}

Expected<CloverHead> mlir::llm::readCloverHead(const WeightSource &source,
                                               StringRef configPath,
                                               int64_t width,
                                               int64_t vocabulary) {
  Expected<CheckpointConfig> read =
      readHeadConfig(configPath, width, vocabulary, {"clover"});
  if (!read)
    return read.takeError();
  CloverHead head;
  LayerHead &layers = head.layers;
  layers.name = "clover";
  layers.config = std::move(read->config);
  ModelConfig &config = layers.config;
  const LayerConfig like = config.layers.front();
  if (width % like.heads != 0 || config.norm != NormKind::Rms)
    return llvm::createStringError(
        "'" + configPath + "' num_attention_heads expects a divisor of the "
        "width " + Twine(width) + ", with RMS norms, but got " +
        Twine(like.heads));
  TensorTable tensors(source);
  const TensorNames &names = kLlamaNames;
  config.layers.clear();
  while (tensors.has("layers." + Twine(config.layers.size()) + "." +
                     names.query + ".weight")) {
    layers.weights.layers.push_back(
        findLayer(config, names, like,
                  "layers." + Twine(config.layers.size()) + ".", tensors));
    config.layers.push_back(like);
  }
  if (config.layers.empty())
    return llvm::createStringError("'" + source.path() +
                                   "' expects a tensor 'layers.0." +
                                   names.query + ".weight', but got none");
  const auto norm = [&](const Twine &name) {
    return takeNorm(tensors, name, width);
  };
  const auto linear = [&](const Twine &name, int64_t columns) {
    return takeLinear(tensors, name, width, columns);
  };
  const auto attend = [&](StringRef name) {
    return CloverHead::Attend{norm(name + ".input_layernorm"),
                              linear(name + ".q", width),
                              linear(name + ".k", width),
                              linear(name + ".v", width)};
  };
  layers.finalNorm = norm("clover_norm");
  head.enter = attend("clover_head_mlp_rnn");
  head.next = attend("clover_head_mlp_rnn2");
  head.first = linear("clover_head_mlp", width);
  head.others = linear("clover_head_mlp2", 2 * width);
  head.rowNorm = norm("clover_head_norm");
  head.table = {
      tensors.take("clover_embed_tokens.weight", {vocabulary, width})};
  // A copy of the model's.
  tensors.takeOptional("lm_head.weight", {vocabulary, width});
  if (Error error = tensors.finish("Clover head"))
    return error;
  return head;
}

Value CloverHeadBuilder::embedded(Value id) {
  return embed(id, weight(clover.table), 1.0);
}

Value CloverHeadBuilder::attend(const CloverHead::Attend &block, Value x,
                                Value e) {
  const int64_t H = config.layers.front().heads, D = config.width;
  Value q = linear(norm(x, block.norm), block.q, {H, D / H}),
        k = linear(e, block.k, {H, D / H}), v = linear(e, block.v, {D});
  Value y = CosineGateOp::create(builder, loc, v.getType(), q, k, v,
                                 number(config.normEpsilon));
  return AddOp::create(builder, loc, x.getType(), x, y);
}

Value CloverHeadBuilder::enter(Value id, Value, Value feature) {
  return attend(clover.enter, feature, embedded(id));
}

LayerHeadBuilder::Guess CloverHeadBuilder::first(Value id, Value token,
                                                 Value feature) {
  Value state = run(enter(id, token, feature));
  return {norm(linear(state, clover.first, {config.width}), clover.rowNorm),
          state};
}

LayerHeadBuilder::Guess CloverHeadBuilder::next(Value id, Value,
                                                Value feature) {
  Value e = embedded(id), state = attend(clover.next, feature, e);
  Value row = joined(clover.others.weight, clover.others.bias, {state, e});
  return {norm(row, clover.rowNorm), state};
}
