#include "lib/Import/GraphBuilder.h"

#include "dialects/LLM/GGUFFormats.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::llm;

GraphBuilder::GraphBuilder(ModuleOp module, const ModelConfig &config, const ModelWeights &weights,
                           const ImportOptions &options)
    : module(module), config(config), weights(weights), options(options), builder(module.getContext()),
      loc(module.getLoc()) {}

RankedTensorType GraphBuilder::rowsType(ArrayRef<int64_t> row) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(row.begin(), row.end());
  return RankedTensorType::get(shape, builder.getF32Type());
}

/// Quantised types say how their bytes lie; floats lie in one way only.
static RankedTensorType fileType(MLIRContext *context, const WeightTensor &tensor) {
  Type element = getGGUFType(context, *lookupGGUF(uint32_t(tensor.format)));
  Attribute layout;
  if (isa<QuantizedType>(element))
    layout = LayoutAttr::get(context, LayoutKind::GGUF);
  return RankedTensorType::get(tensor.shape, element, layout);
}

Value GraphBuilder::weight(const WeightTensor &tensor) {
  return WeightOp::create(builder, loc, fileType(module.getContext(), tensor), kSource, tensor.key);
}

Value GraphBuilder::matrix(Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  if (!options.explicitDequantize || !isa<QuantizedType>(type.getElementType()))
    return stored;
  return DequantizeOp::create(builder, loc, RankedTensorType::get(type.getShape(), builder.getF32Type()), stored);
}

Value GraphBuilder::norm(Value x, const WeightTensor &gamma) {
  return RmsNormOp::create(builder, loc, x.getType(), x, weight(gamma),
                           builder.getF32FloatAttr(float(config.normEpsilon)), IntegerAttr());
}

Value GraphBuilder::linear(Value x, const LinearWeights &weights, ArrayRef<int64_t> shape, Value residual) {
  Value bias = weights.bias ? weight(*weights.bias) : Value();
  return LinearOp::create(builder, loc, rowsType(shape), x, matrix(weight(*weights.weight)), bias, residual);
}

Value GraphBuilder::scaled(Value x, double factor) {
  if (factor == 1.0)
    return x;
  return ScaleOp::create(builder, loc, x.getType(), x, builder.getF32FloatAttr(float(factor)));
}

Value GraphBuilder::closeBlock(Value x, const LinearWeights &weights, Value residual) {
  if (config.residualScale == 1.0)
    return linear(x, weights, {config.width}, residual);
  Value y = scaled(linear(x, weights, {config.width}), config.residualScale);
  return AddOp::create(builder, loc, y.getType(), residual, y);
}

Value GraphBuilder::rope(Value x) {
  const auto number = [&](double value, bool wanted) {
    return wanted ? builder.getF32FloatAttr(float(value)) : FloatAttr();
  };
  const RopeConfig &rope = config.rope;
  const bool linearScale = !frequencies && rope.scaling == RopeScaling::Linear;
  const IntegerAttr dims =
      rope.dimensions == config.keySize ? IntegerAttr() : builder.getI64IntegerAttr(rope.dimensions);
  return RopeOp::create(builder, loc, x.getType(), x, positions, frequencies, number(rope.base, !frequencies), dims,
                        number(1.0 / rope.factor, linearScale && rope.factor != 1.0),
                        number(angles.magnitude, angles.magnitude != 1.0), IntegerAttr(),
                        config.interleavedPairs ? builder.getUnitAttr() : UnitAttr());
}

Value GraphBuilder::buildAttention(size_t index, Value hidden) {
  const LayerConfig &layer = config.layers[index];
  const LayerWeights &tensors = weights.layers[index];
  const CacheSlot &cache = caches[index];
  Value x = norm(hidden, *tensors.attentionNorm);
  Value q = linear(x, tensors.q, {layer.heads, config.keySize});
  Value k = linear(x, tensors.k, {layer.kvHeads, config.keySize});
  Value v = linear(x, tensors.v, {layer.kvHeads, config.valueSize});
  q = rope(q);
  k = rope(k);
  Value handle = KVOp::create(builder, loc, cache.type, cache.symbol, cache.index);
  KVAppendOp::create(builder, loc, handle, k, v, positions, Value());
  const auto window = config.window ? builder.getI64IntegerAttr(config.window) : IntegerAttr();
  Value mixed = AttentionOp::create(builder, loc, rowsType({layer.heads, config.valueSize}), q, handle, positions,
                                    /*bias=*/Value(), builder.getF32FloatAttr(float(config.attentionScale)),
                                    /*softcap=*/FloatAttr(), window, /*sinks=*/IntegerAttr(),
                                    MaskKindAttr::get(module.getContext(), MaskKind::Causal), BlockMaskAttr());
  return closeBlock(mixed, tensors.o, hidden);
}

Value GraphBuilder::buildFeedForward(size_t index, Value hidden) {
  const LayerWeights &tensors = weights.layers[index];
  const int64_t F = config.layers[index].feedForward;
  Value x = norm(hidden, *tensors.feedForwardNorm);
  Value gate = linear(x, tensors.gate, {F});
  Value up = linear(x, tensors.up, {F});
  Value mixed = GatedActivationOp::create(builder, loc, gate.getType(), config.activation, gate, up);
  return closeBlock(mixed, tensors.down, hidden);
}

Value GraphBuilder::buildLayer(size_t index, Value hidden) {
  auto layer = LayerOp::create(builder, loc, int64_t(index), "decoder", ValueRange{hidden});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(layer.getBodyBlock());
  Value x = layer.getBodyBlock()->getArgument(0);
  if (weights.layers[index].attentionNorm)
    x = buildAttention(index, x);
  if (weights.layers[index].feedForwardNorm)
    x = buildFeedForward(index, x);
  YieldOp::create(builder, loc, ValueRange{x});
  return layer.getResult(0);
}

void GraphBuilder::buildForward() {
  auto idsType = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto type = builder.getFunctionType({idsType, idsType, idsType}, {rowsType({config.vocabulary})});
  auto forward = func::FuncOp::create(builder, loc, "forward", type);
  Block *body = forward.addEntryBlock();
  builder.setInsertionPointToStart(body);
  ids = body->getArgument(0);
  positions = body->getArgument(1);
  rows = body->getArgument(2);

  std::vector<float> divisors;
  if (weights.ropeFactors) {
    divisors.resize(size_t(weights.ropeFactors->elements()));
    sprig::quant::decode(weights.ropeFactors->format, weights.ropeFactors->data.data(), divisors.data(),
                         divisors.size());
  }
  angles = ropeAngles(config.rope, divisors);
  if (weights.ropeFactors || config.rope.scaling == RopeScaling::Yarn) {
    auto vector = RankedTensorType::get({int64_t(angles.frequencies.size())}, builder.getF32Type());
    frequencies = WeightOp::create(builder, loc, DenseElementsAttr::get(vector, ArrayRef(angles.frequencies)));
  }

  Value table = weight(*weights.embedding);
  const auto embeddingScale =
      config.embeddingScale == 1.0 ? FloatAttr() : builder.getF32FloatAttr(float(config.embeddingScale));
  Value hidden = EmbeddingOp::create(builder, loc, rowsType({config.width}), ids, matrix(table), embeddingScale);
  for (size_t index = 0; index < config.layers.size(); ++index)
    hidden = buildLayer(index, hidden);
  // A prefill wants the logits of few rows: choose before the head is computed.
  hidden = SelectRowsOp::create(builder, loc, hidden, rows);
  hidden = norm(hidden, *weights.outputNorm);
  Value head = weights.output.weight == weights.embedding ? table : weight(*weights.output.weight);
  Value bias = weights.output.bias ? weight(*weights.output.bias) : Value();
  Value logits = LinearOp::create(builder, loc, rowsType({config.vocabulary}), hidden, matrix(head), bias);
  func::ReturnOp::create(builder, loc, scaled(logits, config.logitScale));
}

void GraphBuilder::build(const WeightSource &source) {
  buildSymbols(source);
  builder.setInsertionPointToEnd(module.getBody());
  buildForward();
}
