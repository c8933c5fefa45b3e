// Experts: which a token goes to, and the products with their weights alone.
#include "codegen/Kernels/AdapterChoice.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/ExpertLinear.h"
#include "codegen/Kernels/Route.h"
#include "codegen/Lowering/OpLowerings.h"
#include <numeric>

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
  spec.byBest = op.getByBest();
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

/// What one kernel takes: all experts, or fewer where no binding can span them; or rows of one.
struct ExpertPart {
  int64_t experts, rows;
};

/// The failure is reported.
FailureOr<ExpertPart> partOf(ProgramLowering &p, ExpertLinearOp op,
                             const ExpertLinearSpec &spec) {
  FailureOr<KernelInterface> interface =
      spec.interface(p.profile(), [&] { return op.emitOpError(); });
  if (failed(interface))
    return failure();
  const int64_t rows = p.rowsWithin(*interface, spec.experts * spec.n);
  const int64_t fit = rows / spec.n;
  if (fit == spec.experts)
    return ExpertPart{fit, spec.n};
  // Parts start at rows at which any part of a weight may.
  constexpr int64_t unit = ProgramLowering::kRowsOfAPart;
  const int64_t step = unit / std::gcd(unit, spec.n);
  if (fit / step)
    return ExpertPart{fit / step * step, spec.n};
  const bool inRows =
      spec.n % unit == 0 && !BlockCodec::find(spec.format)->inOneBinding();
  if (inRows && rows / unit)
    return ExpertPart{1, rows / unit * unit};
  return op.emitOpError("expects experts of which ")
         << (inRows ? std::to_string(unit) + " rows" : std::to_string(step))
         << " fit a binding of target '"
         << p.profile().name << "', but each is " << spec.n << "x" << spec.k
         << "; numbers of fewer bits (--quantize) may fit";
}

LogicalResult lowerExpertLinear(ProgramLowering &p, ExpertLinearOp op) {
  if (op.getBias())
    return op.emitOpError("expects experts without a bias, which is not "
                          "supported on devices, but got one");
  const auto input = cast<RankedTensorType>(op.getInput().getType());
  const auto result = cast<RankedTensorType>(op.getResult().getType());
  // Quantised rows lie as the f32 numbers that they stand for.
  const bool rounded = isa<QuantizedType>(input.getElementType());
  if (!(input.getElementType().isF32() || rounded) ||
      !result.getElementType().isF32())
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
  const int64_t rows = p.rowsOf(op.getInput());
  SmallVector<Operand> inputs{{"x", p.view(op.getInput())},
                              {"ids", p.view(op.getIds())}};
  p.addFormatTable(spec.format, inputs);
  if (op.getCombine()) {
    spec.combine = true;
    inputs.push_back({"combine", p.view(op.getCombine())});
  }
  Value sum = op.getResidual() ? p.view(op.getResidual()) : Value();
  FailureOr<ExpertPart> part = partOf(p, op, spec);
  if (failed(part))
    return failure();

  // A tensor that no binding can span is read in parts, each by the tokens whose
  // experts are in it. Sums go from part to part as residuals.
  const int64_t all = spec.experts, top = spec.top, N = spec.n;
  const uint64_t bytes =
      uint64_t(p.paddedRows(rows) * ProgramLowering::rowElements(op.getResult())) *
      4;
  Value y;
  for (spec.first = 0; spec.first < all; spec.first += part->experts) {
    spec.experts = std::min(part->experts, all - spec.first);
    spec.of = part->experts == all ? 0 : all;
    spec.residual = bool(sum);
    const bool last = spec.first + part->experts >= all;
    if (!y || spec.combine)
      y = last || !spec.combine ? p.allocate(op.getResult(), rows)
                                : p.scratch("experts", bytes);
    for (int64_t row = 0; row < N; row += part->rows) {
      spec.n = std::min(part->rows, N - row);
      spec.stride = part->rows == N ? 0 : N;
      const auto columns = [&](Value view) {
        const uint64_t size = uint64_t(plan::getViewBytes(view)), at = uint64_t(row) * 4;
        return part->rows == N ? view : p.slice(view, at, size - at);
      };
      FailureOr<WeightOperand> own = p.rowsOfWeight(
          op.getWeight(), spec.first * N + row, spec.experts * spec.n, op);
      if (failed(own))
        return failure();
      SmallVector<Operand> operands = own->named("weight");
      // Of the weights a token reads what its experts have.
      for (Operand &plane : operands)
        plane.touched = int64_t(plan::getViewBytes(plane.view)) / spec.experts *
                        std::min(spec.experts, top * rows);
      llvm::append_range(operands, inputs);
      if (sum)
        operands.push_back({"residual", columns(sum)});
      operands.push_back({"y", columns(y)});
      const int64_t share = top * spec.n * spec.k * rows * spec.experts / all;
      if (failed(p.dispatch(op, ExpertLinearSpec::kFamily,
                            spec.toAttr(p.context()), operands, rows,
                            spec.combine ? "experts, sum" : "experts", share)))
        return failure();
    }
    if (spec.combine)
      sum = y;
  }
  return success();
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
