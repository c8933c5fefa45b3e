// Experts: the product that routes, those that a token goes to, and the one
// that all tokens share.
#include "lib/Import/GraphBuilder.h"

using namespace mlir;
using namespace mlir::llm;

Value GraphBuilder::buildExperts(const LayerWeights &tensors, int64_t F,
                                 Value x) {
  const int64_t k = config.expertsUsed;
  const auto count = [&](int64_t groups) {
    return groups ? builder.getI64IntegerAttr(groups) : IntegerAttr();
  };
  Value logits = linear(x, tensors.router, {config.experts});
  Value bias = tensors.routerBias ? weight(tensors.routerBias) : Value();
  auto route = RouteOp::create(
      builder, loc, logits, bias, uint64_t(k), config.expertScore,
      config.normaliseExperts,
      number(config.expertScale, config.expertScale != 1.0),
      count(config.expertGroups), count(config.expertTopGroups),
      config.expertGroupsByBest && config.expertGroups);
  const auto product = [&](Value input, const WeightRef &ref,
                           ArrayRef<int64_t> shape, Value combine) -> Value {
    return ExpertLinearOp::create(builder, loc, rowsType(shape),
                                  roundedInput(input, ref, /*apart=*/true),
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

Value GraphBuilder::addSharedExpert(const LayerWeights &tensors, Value x,
                                    Value sum) {
  if (!tensors.sharedDown.weight)
    return sum;
  const int64_t F = config.sharedFeedForward;
  Value gate = linear(x, tensors.sharedGate, {F});
  Value mixed = linear(x, tensors.sharedUp, {F});
  mixed = GatedActivationOp::create(builder, loc, gate.getType(),
                                    config.activation, gate, mixed);
  if (!tensors.sharedRouter.weight)
    return linear(mixed, tensors.sharedDown, {config.width}, sum);
  // A mixture of one: its weight is the sigmoid of the gate.
  auto route = RouteOp::create(
      builder, loc, linear(x, tensors.sharedRouter, {1}), /*bias=*/Value(),
      /*top=*/uint64_t(1), ScoreKind::Sigmoid, /*normalise=*/false,
      /*scale=*/FloatAttr(), /*groups=*/IntegerAttr(),
      /*top_groups=*/IntegerAttr(), /*by_best=*/false);
  Value down = weight(tensors.sharedDown.weight);
  auto type = cast<RankedTensorType>(down.getType());
  down = ReshapeOp::create(builder, loc,
                           RankedTensorType::get({1, config.width, F},
                                                 type.getElementType(),
                                                 type.getEncoding()),
                           down);
  Value shared = ExpertLinearOp::create(
      builder, loc, rowsType({config.width}),
      roundedInput(mixed, tensors.sharedDown.weight), route.getIds(),
      matrix(down), route.getWeights(), /*bias=*/Value(), /*residual=*/Value());
  return AddOp::create(builder, loc, sum.getType(), sum, shared);
}
