#include "lib/Import/Eagle3Head.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::llm;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// The logit of tokens that the head does not know: no temperature makes them
/// likely.
static constexpr float kUnknown = -1e6f;
/// States of the model that are read.
static constexpr int64_t kStates = 3;

bool mlir::llm::isEagle3Head(const WeightSource &source) {
  return source.find("d2t") || source.find("midlayer.hidden_norm.weight") ||
         source.find("layers.0.hidden_norm.weight");
}

/// `d2t`, turned round.
static Expected<std::vector<int32_t>> readRows(const WeightSource &source,
                                               const WeightTensor &offsets,
                                               int64_t vocabulary) {
  std::vector<int32_t> rowOf(size_t(vocabulary), -1);
  for (int64_t row = 0; row < offsets.elements(); ++row) {
    const int64_t token =
        row + llvm::support::endian::read64le(offsets.data.data() + 8 * row);
    if (token < 0 || token >= vocabulary || rowOf[size_t(token)] >= 0)
      return llvm::createStringError(
          "'" + source.path() + "' d2t expects tokens below " +
          Twine(vocabulary) + ", each once, but row " + Twine(row) + " is of " +
          Twine(token));
    rowOf[size_t(token)] = int32_t(row);
  }
  return rowOf;
}

Expected<Eagle3Head> mlir::llm::readEagle3Head(const WeightSource &source,
                                               StringRef configPath,
                                               int64_t width,
                                               int64_t vocabulary) {
  Expected<CheckpointConfig> read =
      readHeadConfig(configPath, width, vocabulary,
                     {"bias", "draft_vocab_size", "target_hidden_size"});
  if (!read)
    return read.takeError();
  Eagle3Head head;
  LayerHead &own = head.layer;
  own.name = "eagle3";
  own.config = std::move(read->config);
  const ModelConfig &config = own.config;
  if (config.layers.size() != 1 || config.norm != NormKind::Rms ||
      !config.gated || config.latent || config.learnedPositions)
    return llvm::createStringError(
        "'" + configPath + "' expects one layer like Llama's, for an EAGLE-3 "
        "head, but got " + Twine(config.layers.size()) + " of '" +
        config.architecture + "'");
  const LayerConfig &like = config.layers.front();
  TensorTable tensors(source);
  const std::string prefix =
      tensors.has("midlayer.hidden_norm.weight") ? "midlayer." : "layers.0.";
  const auto norm = [&](const Twine &name) {
    return takeNorm(tensors, name, width);
  };
  const auto linear = [&](const Twine &name, int64_t rows, int64_t columns) {
    return takeLinear(tensors, name, rows, columns);
  };
  const int64_t keys = like.kvHeads * config.keySize,
                values = like.kvHeads * config.valueSize, F = like.feedForward;
  LayerWeights layer;
  layer.q = linear(prefix + "self_attn.q_proj", like.heads * config.keySize,
                   2 * width);
  layer.k = linear(prefix + "self_attn.k_proj", keys, 2 * width);
  layer.v = linear(prefix + "self_attn.v_proj", values, 2 * width);
  layer.o =
      linear(prefix + "self_attn.o_proj", width, like.heads * config.valueSize);
  layer.beforeFeedForward = norm(prefix + "post_attention_layernorm");
  layer.gate = linear(prefix + "mlp.gate_proj", F, width);
  layer.up = linear(prefix + "mlp.up_proj", F, width);
  layer.down = linear(prefix + "mlp.down_proj", width, F);
  own.weights.layers.push_back(std::move(layer));
  own.tokenNorm = norm(prefix + "input_layernorm");
  own.featureNorm = norm(prefix + "hidden_norm");
  const LinearWeights fc = linear("fc", width, kStates * width);
  own.projection = fc.weight, own.bias = fc.bias;
  head.rowNorm = norm("norm");

  const WeightTensor *offsets = tensors.find("d2t");
  int64_t known = vocabulary;
  if (offsets) {
    if (offsets->shape.size() != 1 ||
        offsets->format != sprig::quant::Format::I64)
      return llvm::createStringError(
          "'" + source.path() + "' d2t expects a vector of 64-bit integers, but "
          "got " + sprig::quant::info(offsets->format).name);
    known = offsets->elements();
    tensors.ignore("d2t");
    Expected<std::vector<int32_t>> rows =
        readRows(source, *offsets, vocabulary);
    if (!rows)
      return rows.takeError();
    head.rowOf = std::move(*rows);
    head.table = {tensors.take("lm_head.weight", {known, width})};
  } else {
    head.table = {tensors.takeOptional("lm_head.weight", {vocabulary, width})};
  }
  // Which tokens have a row says d2t as well; the embedding is the model's.
  tensors.ignore("t2d");
  tensors.takeOptional("embed_tokens.weight", {vocabulary, width});
  if (Error error = tensors.finish("EAGLE-3 head"))
    return error;
  return head;
}

FailureOr<SmallVector<int64_t>>
Eagle3HeadBuilder::inputsOf(int64_t layers) const {
  SmallVector<int64_t> wanted = {2, layers / 2, layers - 3};
  ::llvm::sort(wanted);
  if (wanted[0] < 0 || wanted[2] >= layers || wanted[0] == wanted[1] ||
      wanted[1] == wanted[2])
    return emitError(loc, "expects a model whose layers 2, L / 2 and L - 3 of "
                            "L are three, for an EAGLE-3 head, but got ")
           << layers << " layers";
  return wanted;
}

Value Eagle3HeadBuilder::fused(ArrayRef<Value> inputs) {
  return joined(eagle.layer.projection, eagle.layer.bias, inputs);
}

Value Eagle3HeadBuilder::enter(Value, Value token, Value feature) {
  tokenRow = norm(token, eagle.layer.tokenNorm);
  return feature;
}

GraphBuilder::Heads
Eagle3HeadBuilder::buildHeads(const LayerConfig &layer,
                              const LayerWeights &tensors, Value x) {
  x = norm(x, eagle.layer.featureNorm);
  const auto both = [&](const LinearWeights &part, int64_t heads, int64_t size) {
    return joined(part.weight, part.bias, {tokenRow, x}, {heads, size});
  };
  return {both(tensors.q, layer.heads, config.keySize),
          both(tensors.k, layer.kvHeads, config.keySize),
          both(tensors.v, layer.kvHeads, config.valueSize)};
}

LayerHeadBuilder::Guess Eagle3HeadBuilder::first(Value id, Value token,
                                                 Value feature) {
  Value left = run(enter(id, token, feature));
  return {norm(left, eagle.rowNorm), left};
}

Value Eagle3HeadBuilder::logits(Value row) {
  if (!eagle.table)
    return {};
  Value table = weight(eagle.table);
  if (eagle.rowOf.empty())
    return LinearOp::create(builder, loc, rowsType({config.vocabulary}), row,
                            matrix(table), Value());
  // One row more, for tokens without one.
  const auto type = cast<RankedTensorType>(table.getType());
  const int64_t known = type.getDimSize(0);
  auto emptyType = RankedTensorType::get({1, config.width},
                                         type.getElementType());
  Value empty = WeightOp::create(
      builder, loc,
      DenseElementsAttr::get(emptyType,
                             builder.getFloatAttr(type.getElementType(), 0.0)));
  std::vector<float> bias(size_t(known) + 1);
  bias.back() = kUnknown;
  std::vector<int32_t> index(eagle.rowOf);
  for (int32_t &at : index)
    at = at < 0 ? int32_t(known) : at;
  const auto vector = [&](Type element, size_t size) {
    return RankedTensorType::get({int64_t(size)}, element);
  };
  Value all = ConcatOp::create(builder, loc, ValueRange{table, empty}, 0);
  Value offset = WeightOp::create(
      builder, loc,
      DenseElementsAttr::get(vector(builder.getF32Type(), bias.size()),
                             ArrayRef(bias)));
  Value order = WeightOp::create(
      builder, loc,
      DenseElementsAttr::get(vector(builder.getI32Type(), index.size()),
                             ArrayRef(index)));
  Value some = LinearOp::create(builder, loc, rowsType({known + 1}), row, all,
                                offset);
  return GatherOp::create(builder, loc, some, order, 1);
}
