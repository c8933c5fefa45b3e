// Experts: which a token goes to, and the products with their weights alone.
#include "codegen/Kernels/AdapterChoice.h"
#include "codegen/Kernels/ExpertLinear.h"
#include "codegen/Kernels/Route.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult lowerRoute(ProgramLowering &p, RouteOp op) {
  RouteSpec spec;
  spec.experts = p.rowElements(op.getLogits());
  spec.top = int64_t(op.getTop());
  spec.score = stringifyScoreKind(op.getScore());
  spec.normalise = op.getNormalise();
  if (auto scale = op.getScale())
    spec.scale = scale->convertToDouble();
  spec.groups = int64_t(op.getGroups().value_or(0));
  spec.topGroups = int64_t(op.getTopGroups().value_or(0));
  SmallVector<Operand> operands{{"x", p.view(op.getLogits())}};
  if (op.getBias()) {
    FailureOr<Value> bias = p.vectorWeight(op.getBias(), op);
    if (failed(bias))
      return failure();
    spec.bias = true;
    operands.push_back({"bias", *bias});
  }
  const int64_t rows = p.rowsOf(op.getLogits());
  operands.push_back({"ids", p.allocate(op.getIds(), rows)});
  operands.push_back({"weights", p.allocate(op.getWeights(), rows)});
  return p.dispatch(op, RouteSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows, "route");
}

LogicalResult lowerAdapterChoice(ProgramLowering &p, AdapterChoiceOp op) {
  FailureOr<Value> gains = p.vectorWeight(op.getGains(), op);
  if (failed(gains))
    return failure();
  AdapterChoiceSpec spec;
  spec.adapters = cast<RankedTensorType>(op.getGains().getType()).getDimSize(0);
  const int64_t rows = p.rowsOf(op.getPositions());
  const Operand operands[] = {{"control", p.controlView()},
                              {"gains", *gains},
                              {"ids", p.allocate(op.getIds(), rows)},
                              {"gain", p.allocate(op.getGain(), rows)}};
  return p.dispatch(op, AdapterChoiceSpec::kFamily, spec.toAttr(p.context()),
                    operands, rows, "adapter");
}

LogicalResult lowerExpertLinear(ProgramLowering &p, ExpertLinearOp op) {
  if (op.getBias())
    return op.emitOpError("expects experts without a bias, which is not "
                          "supported on devices, but got one");
  const auto input = cast<RankedTensorType>(op.getInput().getType());
  const auto result = cast<RankedTensorType>(op.getResult().getType());
  if (!input.getElementType().isF32() || !result.getElementType().isF32())
    return op.emitOpError("expects activations of f32, but got ")
           << input << " and " << result;
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return failure();
  const auto shape =
      cast<RankedTensorType>(op.getWeight().getType()).getShape();
  ExpertLinearSpec spec;
  spec.format = weight->layout.format;
  spec.experts = shape[0];
  spec.n = shape[1];
  spec.k = shape[2];
  spec.top = cast<RankedTensorType>(op.getIds().getType()).getShape()[1];
  spec.each = input.getRank() == 3 && input.getDimSize(1) == spec.top &&
              input.getDimSize(2) == spec.k;
  SmallVector<Operand> operands = weight->named("weight");
  // Of the weights a token reads what its experts have.
  for (Operand &plane : operands)
    plane.touched = int64_t(plan::getViewBytes(plane.view)) / spec.experts *
                    std::min(spec.experts, spec.top * p.rowsOf(op.getInput()));
  operands.push_back({"x", p.view(op.getInput())});
  operands.push_back({"ids", p.view(op.getIds())});
  if (op.getCombine()) {
    spec.combine = true;
    operands.push_back({"combine", p.view(op.getCombine())});
  }
  if (op.getResidual()) {
    spec.residual = true;
    operands.push_back({"residual", p.view(op.getResidual())});
  }
  const int64_t rows = p.rowsOf(op.getInput());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, ExpertLinearSpec::kFamily, spec.toAttr(p.context()),
                    operands, rows, spec.combine ? "experts, sum" : "experts",
                    spec.top * spec.n * spec.k * rows);
}

} // namespace

ArrayRef<OpLoweringRow> expertLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<AdapterChoiceOp, lowerAdapterChoice>(),
      loweringOf<ExpertLinearOp, lowerExpertLinear>(),
      loweringOf<RouteOp, lowerRoute>(),
  };
  return rows;
}

} // namespace mlir::llm
