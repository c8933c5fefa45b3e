#include "lib/Import/GraphBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::llm;

GraphBuilder::GraphBuilder(ModuleOp module, const ModelConfig &config,
                           const ModelWeights &weights,
                           const ImportOptions &options)
    : module(module), config(config), weights(weights), options(options),
      builder(module.getContext()), loc(module.getLoc()) {}

RankedTensorType GraphBuilder::rowsType(ArrayRef<int64_t> row) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(row.begin(), row.end());
  return RankedTensorType::get(shape, builder.getF32Type());
}

FloatAttr GraphBuilder::number(double value, bool wanted) {
  return wanted ? builder.getF32FloatAttr(float(value)) : FloatAttr();
}

Value GraphBuilder::norm(Value x, const NormWeights &norm) {
  Value gamma = weight(norm.gamma);
  if (config.norm == NormKind::Rms)
    return RmsNormOp::create(builder, loc, x.getType(), x, gamma,
                             number(config.normEpsilon), IntegerAttr());
  Value beta = norm.beta ? weight(norm.beta) : Value();
  return LayerNormOp::create(builder, loc, x.getType(), x, gamma, beta,
                             number(config.normEpsilon), IntegerAttr());
}

Value GraphBuilder::headNorm(Value x, const WeightRef &gamma,
                             std::optional<double> epsilon) {
  if (!gamma)
    return x;
  return RmsNormOp::create(builder, loc, x.getType(), x, weight(gamma),
                           number(epsilon.value_or(config.normEpsilon)),
                           IntegerAttr());
}

Value GraphBuilder::linear(Value x, const LinearWeights &weights,
                           ArrayRef<int64_t> shape, Value residual) {
  Value bias = weights.bias ? weight(weights.bias) : Value();
  const std::optional<QuantisedMatrix> &split = weights.weight.quantised;
  Value order = split ? columnOrder(*split) : Value();
  Value w = weight(weights.weight, order);
  // Rows of several heads cannot be put in order, the weight can.
  if (order && cast<RankedTensorType>(x.getType()).getRank() == 2)
    x = GatherOp::create(builder, loc, x, order, 1);
  else if (order)
    w = reordered(w, order);
  return LinearOp::create(builder, loc, rowsType(shape),
                          roundedInput(x, weights.weight), matrix(w), bias,
                          residual);
}

Value GraphBuilder::scaled(Value x, double factor) {
  if (factor == 1.0)
    return x;
  return ScaleOp::create(builder, loc, x.getType(), x, number(factor));
}

Value GraphBuilder::closeBlock(Value x, const LinearWeights &weights,
                               const NormWeights &after, Value residual) {
  if (config.residualScale == 1.0 && !after)
    return linear(x, weights, {config.width}, residual);
  return addBlock(linear(x, weights, {config.width}), after, residual);
}

Value GraphBuilder::addBlock(Value y, const NormWeights &after,
                             Value residual) {
  if (after)
    y = norm(y, after);
  y = scaled(y, config.residualScale);
  return AddOp::create(builder, loc, y.getType(), residual, y);
}

/// The slopes of ALiBi (arXiv 2108.12409, section 3): a geometric series; with a
/// number of heads that is no power of two, the rest are every other slope of
/// twice as many.
static std::vector<float> alibiSlopes(int64_t heads) {
  const auto below = int64_t(llvm::bit_floor(uint64_t(heads)));
  std::vector<float> slopes;
  for (int64_t i = 0; i < below; ++i)
    slopes.push_back(float(std::exp2(-8.0 * double(i + 1) / double(below))));
  for (int64_t i = 0; below + i < heads; ++i)
    slopes.push_back(float(std::exp2(-4.0 * double(2 * i + 1) / double(below))));
  return slopes;
}

void GraphBuilder::buildSlopes() {
  if (!config.alibi)
    return;
  const int64_t H = config.layers.front().heads;
  auto type = RankedTensorType::get({H}, builder.getF32Type());
  slopes = WeightOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef(alibiSlopes(H))));
}

/// The numbers of a vector that a file may have.
static std::vector<float> numbersOf(const WeightTensor *vector) {
  std::vector<float> numbers(vector ? size_t(vector->elements()) : 0);
  if (vector)
    sprig::quant::decode(vector->format, vector->data.data(), numbers.data(),
                         numbers.size());
  return numbers;
}

void GraphBuilder::buildRotations() {
  const std::vector<float> divisors = numbersOf(weights.ropeFactors);
  for (const auto [index, stated] : llvm::enumerate(config.ropes)) {
    RopeConfig rope = stated;
    if (weights.longFactors && index == 0) {
      rope.shortDivisors = numbersOf(weights.shortFactors);
      rope.longDivisors = numbersOf(weights.longFactors);
    }
    Rotation &rotation = rotations.emplace_back();
    const bool divided = index == 0 && !divisors.empty();
    rotation.angles =
        ropeAngles(rope, divided ? divisors : std::vector<float>());
    const bool byBase = rope.scaling == RopeScaling::None ||
                        rope.scaling == RopeScaling::Linear;
    if (byBase && !divided && !rope.roundToBF16)
      continue;
    std::vector<float> table = rotation.angles.frequencies;
    SmallVector<int64_t> shape{int64_t(table.size())};
    if (rope.scaling == RopeScaling::Long) {
      const std::vector<float> &further = rotation.angles.longFrequencies;
      table.insert(table.end(), further.begin(), further.end());
      shape.insert(shape.begin(), 2);
    }
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    rotation.frequencies = WeightOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef(table)));
  }
}

Value GraphBuilder::rope(Value x, int64_t index) {
  if (index < 0)
    return x;
  const RopeConfig &rope = config.ropes[size_t(index)];
  const auto &[frequencies, angles] = rotations[size_t(index)];
  const bool linearScale =
      !frequencies && rope.scaling == RopeScaling::Linear && rope.factor != 1.0;
  const auto size = [&](int64_t value, bool wanted) {
    return wanted ? builder.getI64IntegerAttr(value) : IntegerAttr();
  };
  return RopeOp::create(
      builder, loc, x.getType(), x, positions, frequencies,
      number(rope.base, !frequencies),
      size(rope.dimensions, rope.dimensions != config.keySize),
      number(1.0 / rope.factor, linearScale),
      number(angles.magnitude, angles.magnitude != 1.0),
      size(rope.originalContext, rope.scaling == RopeScaling::Long),
      config.interleavedPairs ? builder.getUnitAttr() : UnitAttr());
}

GraphBuilder::Heads GraphBuilder::buildHeads(const LayerConfig &layer,
                                             const LayerWeights &tensors,
                                             Value x) {
  if (config.latent)
    return buildLatentHeads(layer, tensors, x);
  Heads heads;
  heads.q = linear(x, tensors.q, {layer.heads, config.keySize});
  heads.k = linear(x, tensors.k, {layer.kvHeads, config.keySize});
  heads.v = linear(x, tensors.v, {layer.kvHeads, config.valueSize});
  heads.q = headNorm(heads.q, tensors.queryNorm);
  heads.k = headNorm(heads.k, tensors.keyNorm);
  return heads;
}

Value GraphBuilder::buildAttention(size_t index, Value hidden) {
  const LayerConfig &layer = config.layers[index];
  const LayerWeights &tensors = weights.layers[index];
  const CacheSlot &cache = caches[index];
  Value x =
      tensors.beforeAttention ? norm(hidden, tensors.beforeAttention) : hidden;
  auto [q, k, v] = buildHeads(layer, tensors, x);
  q = rope(q, layer.rope);
  k = rope(k, layer.rope);
  Value handle =
      KVOp::create(builder, loc, cache.type, cache.symbol, cache.index);
  KVAppendOp::create(builder, loc, handle, k, v, positions, Value());
  const auto window =
      layer.window ? builder.getI64IntegerAttr(layer.window) : IntegerAttr();
  Value mixed = AttentionOp::create(
      builder, loc, rowsType({layer.heads, config.valueSize}), q, handle,
      positions, slopes, number(config.attentionScale),
      number(config.attentionSoftcap, config.attentionSoftcap != 0.0), window,
      /*sinks=*/IntegerAttr(),
      MaskKindAttr::get(module.getContext(), MaskKind::Causal),
      BlockMaskAttr());
  return closeBlock(mixed, tensors.o, tensors.afterAttention, hidden);
}

Value GraphBuilder::buildFeedForward(size_t index, Value hidden) {
  const LayerWeights &tensors = weights.layers[index];
  const int64_t F = config.layers[index].feedForward;
  Value x = tensors.beforeFeedForward ? norm(hidden, tensors.beforeFeedForward)
                                      : hidden;
  if (tensors.router.weight)
    return addBlock(
        addSharedExpert(tensors, x, buildExperts(tensors, F, x)),
        tensors.afterFeedForward, hidden);
  Value gate = config.gated ? linear(x, tensors.gate, {F}) : Value();
  Value mixed = linear(x, tensors.up, {F});
  if (gate)
    mixed = GatedActivationOp::create(builder, loc, gate.getType(),
                                      config.activation, gate, mixed);
  else
    mixed = ActivationOp::create(builder, loc, mixed.getType(),
                                 config.activation, mixed);
  return closeBlock(mixed, tensors.down, tensors.afterFeedForward, hidden);
}

Value GraphBuilder::buildLayer(size_t index, Value hidden) {
  auto layer = LayerOp::create(builder, loc, int64_t(index), "decoder",
                               ValueRange{hidden});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(layer.getBodyBlock());
  Value x = layer.getBodyBlock()->getArgument(0);
  if (weights.layers[index].q.weight)
    x = buildAttention(index, x);
  if (weights.layers[index].down.weight)
    x = buildFeedForward(index, x);
  YieldOp::create(builder, loc, ValueRange{x});
  return layer.getResult(0);
}

Value GraphBuilder::embed(Value ids, Value table, double scale) {
  return EmbeddingOp::create(builder, loc, rowsType({config.width}), ids,
                             matrix(table), number(scale, scale != 1.0));
}

void GraphBuilder::buildForward() {
  auto idsType =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto type = builder.getFunctionType({idsType, idsType, idsType},
                                      {rowsType({config.vocabulary})});
  auto forward = func::FuncOp::create(builder, loc, "forward", type);
  Block *body = forward.addEntryBlock();
  builder.setInsertionPointToStart(body);
  ids = body->getArgument(0);
  positions = body->getArgument(1);
  rows = body->getArgument(2);
  buildRotations();
  buildSlopes();

  Value table = weight(weights.embedding);
  Value hidden = embed(ids, table, config.embeddingScale);
  if (weights.positions) {
    Value at = embed(positions, weight(weights.positions), 1.0);
    hidden = AddOp::create(builder, loc, hidden.getType(), hidden, at);
  }
  for (size_t index = 0; index < config.layers.size(); ++index)
    hidden = buildLayer(index, hidden);
  // A prefill wants the logits of few rows: choose before the head is computed.
  hidden = SelectRowsOp::create(builder, loc, hidden, rows);
  hidden = norm(hidden, weights.outputNorm);
  Value head = weights.tied ? table : weight(weights.output.weight);
  Value bias = weights.output.bias ? weight(weights.output.bias) : Value();
  Value logits = LinearOp::create(builder, loc, rowsType({config.vocabulary}),
                                  hidden, matrix(head), bias);
  logits = scaled(logits, config.logitScale);
  if (config.logitSoftcap != 0.0)
    logits = SoftcapOp::create(builder, loc, logits.getType(), logits,
                               number(config.logitSoftcap));
  func::ReturnOp::create(builder, loc, logits);
}

void GraphBuilder::build(const WeightSource &source) {
  buildSymbols(source);
  builder.setInsertionPointToEnd(module.getBody());
  buildForward();
}
