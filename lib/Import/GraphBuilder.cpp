#include "lib/Import/GraphBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

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

Value GraphBuilder::headNorm(Value x, const WeightRef &gamma) {
  if (!gamma)
    return x;
  return RmsNormOp::create(builder, loc, x.getType(), x, weight(gamma),
                           number(config.normEpsilon), IntegerAttr());
}

Value GraphBuilder::linear(Value x, const LinearWeights &weights,
                           ArrayRef<int64_t> shape, Value residual) {
  Value bias = weights.bias ? weight(weights.bias) : Value();
  Value order = columnOrder(weights.weight);
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

void GraphBuilder::buildRotations() {
  std::vector<float> divisors;
  if (const WeightTensor *factors = weights.ropeFactors) {
    divisors.resize(size_t(factors->elements()));
    sprig::quant::decode(factors->format, factors->data.data(), divisors.data(),
                         divisors.size());
  }
  for (const auto [index, rope] : llvm::enumerate(config.ropes)) {
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

Value GraphBuilder::buildAttention(size_t index, Value hidden) {
  const LayerConfig &layer = config.layers[index];
  const LayerWeights &tensors = weights.layers[index];
  const CacheSlot &cache = caches[index];
  Value x =
      tensors.beforeAttention ? norm(hidden, tensors.beforeAttention) : hidden;
  Value q = linear(x, tensors.q, {layer.heads, config.keySize});
  Value k = linear(x, tensors.k, {layer.kvHeads, config.keySize});
  Value v = linear(x, tensors.v, {layer.kvHeads, config.valueSize});
  q = rope(headNorm(q, tensors.queryNorm), layer.rope);
  k = rope(headNorm(k, tensors.keyNorm), layer.rope);
  Value handle =
      KVOp::create(builder, loc, cache.type, cache.symbol, cache.index);
  KVAppendOp::create(builder, loc, handle, k, v, positions, Value());
  const auto window =
      layer.window ? builder.getI64IntegerAttr(layer.window) : IntegerAttr();
  Value mixed = AttentionOp::create(
      builder, loc, rowsType({layer.heads, config.valueSize}), q, handle,
      positions, /*bias=*/Value(), number(config.attentionScale),
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
  if (tensors.router.weight) {
    Value mixed = buildExperts(tensors, F, x);
    if (tensors.sharedRouter.weight)
      mixed = AddOp::create(builder, loc, mixed.getType(), mixed,
                            buildSharedExpert(tensors, x));
    return addBlock(mixed, tensors.afterFeedForward, hidden);
  }
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

Value GraphBuilder::buildExperts(const LayerWeights &tensors, int64_t F,
                                 Value x) {
  const int64_t k = config.expertsUsed;
  Value logits = linear(x, tensors.router, {config.experts});
  auto route = RouteOp::create(
      builder, loc, logits, /*bias=*/Value(), uint64_t(k), ScoreKind::Softmax,
      config.normaliseExperts, /*scale=*/FloatAttr(), /*groups=*/IntegerAttr(),
      /*top_groups=*/IntegerAttr());
  const auto product = [&](Value input, const WeightRef &ref,
                           ArrayRef<int64_t> shape, Value combine) -> Value {
    return ExpertLinearOp::create(builder, loc, rowsType(shape), input,
                                  route.getIds(), matrix(weight(ref)), combine,
                                  /*bias=*/Value(), /*residual=*/Value());
  };
  Value gate = product(x, tensors.gate.weight, {k, F}, Value());
  Value up = product(x, tensors.up.weight, {k, F}, Value());
  Value mixed = GatedActivationOp::create(builder, loc, gate.getType(),
                                          config.activation, gate, up);
  return product(mixed, tensors.down.weight, {config.width},
                 route.getWeights());
}

Value GraphBuilder::buildSharedExpert(const LayerWeights &tensors, Value x) {
  const int64_t F = config.sharedFeedForward;
  Value gate = linear(x, tensors.sharedGate, {F});
  Value mixed = linear(x, tensors.sharedUp, {F});
  mixed = GatedActivationOp::create(builder, loc, gate.getType(),
                                    config.activation, gate, mixed);
  // A mixture of one: its weight is the sigmoid of the gate.
  auto route = RouteOp::create(
      builder, loc, linear(x, tensors.sharedRouter, {1}), /*bias=*/Value(),
      /*top=*/uint64_t(1), ScoreKind::Sigmoid, /*normalise=*/false,
      /*scale=*/FloatAttr(), /*groups=*/IntegerAttr(),
      /*top_groups=*/IntegerAttr());
  Value down = weight(tensors.sharedDown.weight);
  auto type = cast<RankedTensorType>(down.getType());
  down = ReshapeOp::create(builder, loc,
                           RankedTensorType::get({1, config.width, F},
                                                 type.getElementType(),
                                                 type.getEncoding()),
                           down);
  return ExpertLinearOp::create(builder, loc, rowsType({config.width}), mixed,
                                route.getIds(), matrix(down),
                                route.getWeights(), /*bias=*/Value(),
                                /*residual=*/Value());
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
