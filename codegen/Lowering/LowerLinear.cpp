// Products with a weight, and what is fused with them.
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// What linear and gated_linear have in common: x, the norm, the result, and
/// the spec's shape.
template <typename OpT>
LogicalResult prepare(ProgramLowering &p, OpT op, const WeightOperand &weight,
                      LinearSpec &spec, SmallVectorImpl<Operand> &operands) {
  auto inputType = cast<RankedTensorType>(op.getInput().getType());
  auto resultType = cast<RankedTensorType>(op.getResult().getType());
  if (!inputType.getElementType().isF32() ||
      !resultType.getElementType().isF32())
    return op.emitOpError("expects activations of f32, but got ")
           << inputType << " and " << resultType;
  spec.format = weight.layout.format;
  spec.n = int64_t(weight.layout.N);
  spec.k = int64_t(weight.layout.K);
  spec.tokens = p.tokenTile(p.rowsOf(op.getInput()));
  operands.push_back({"x", p.view(op.getInput())});
  if (!op.getGamma() && !op.getRowScale())
    return success();
  spec.norm = true;
  if (op.getGamma()) {
    FailureOr<Value> gamma = p.vectorWeight(op.getGamma(), op);
    if (failed(gamma))
      return failure();
    operands.push_back({"gamma", *gamma});
  } else {
    auto type = RankedTensorType::get({spec.k}, p.ops().getF32Type());
    operands.push_back(
        {"gamma", p.constant("ones", DenseElementsAttr::get(type, 1.0f))});
  }
  if (!op.getRowScale())
    return op.emitOpError("expects a row_scale beside gamma, but got none; "
                          "scale the weight's columns instead");
  operands.push_back({"factor", p.view(op.getRowScale())});
  return success();
}

LogicalResult lowerLinear(ProgramLowering &p, LinearOp op) {
  auto weightType = cast<RankedTensorType>(op.getWeight().getType());
  if (weightType.getRank() != 2)
    return op.emitOpError("expects a weight NxK, but got ") << weightType;
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return failure();
  LinearSpec spec;
  SmallVector<Operand> operands = weight->named("weight");
  if (failed(prepare(p, op, *weight, spec, operands)))
    return failure();
  if (op.getBias()) {
    FailureOr<Value> bias = p.vectorWeight(op.getBias(), op);
    if (failed(bias))
      return failure();
    spec.bias = true;
    operands.push_back({"bias", *bias});
  }
  if (op.getResidual()) {
    spec.residual = true;
    operands.push_back({"residual", p.view(op.getResidual())});
  }
  int64_t rows = p.rowsOf(op.getInput());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  StringRef what = p.isResult(op.getResult()) ? "head"
                   : op.getResidual()         ? "linear, residual"
                                              : "linear";
  return p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows, what, spec.n * spec.k * rows);
}

/// Gate and up as two products, for a device whose kernels cannot bind all that
/// the fused one reads: formats have up to four planes, and both matrices have
/// them.
LogicalResult lowerGatedApart(ProgramLowering &p, GatedLinearOp op,
                              LinearSpec spec, ArrayRef<Operand> gatePlanes,
                              ArrayRef<Operand> upPlanes,
                              ArrayRef<Operand> inputs) {
  const int64_t rows = p.rowsOf(op.getInput());
  const uint64_t bytes =
      uint64_t(ProgramLowering::paddedRows(rows)) * uint64_t(spec.n) * 4;
  Value parts[] = {p.scratch("gate", bytes), p.scratch("up", bytes)};
  spec.gate.clear();
  for (bool up : {false, true}) {
    SmallVector<Operand> operands(up ? upPlanes : gatePlanes);
    llvm::append_range(operands, inputs);
    operands.push_back({"y", parts[up]});
    if (failed(p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()),
                          operands, rows, up ? "up" : "gate",
                          spec.n * spec.k * rows)))
      return failure();
  }
  ElementwiseSpec gated;
  gated.op = "gated";
  gated.kind = stringifyActivationKind(op.getKind());
  gated.width = spec.n;
  return p.dispatch(
      op, ElementwiseSpec::kFamily, gated.toAttr(p.context()),
      {{"a", parts[0]}, {"b", parts[1]}, {"y", p.allocate(op.getResult(), rows)}},
      rows, "gated");
}

LogicalResult lowerGatedLinear(ProgramLowering &p, GatedLinearOp op) {
  FailureOr<WeightOperand> gate = p.tiledWeight(op.getGate(), op),
                           up = p.tiledWeight(op.getUp(), op);
  if (failed(gate) || failed(up))
    return failure();
  LinearSpec spec;
  SmallVector<Operand> inputs;
  if (failed(prepare(p, op, *gate, spec, inputs)))
    return failure();
  spec.gate = stringifyActivationKind(op.getKind());
  SmallVector<Operand> operands = gate->named("gate");
  operands.append(up->named("up"));
  operands.append(inputs);
  if (operands.size() + 1 > p.profile().limits.storageBuffers)
    return lowerGatedApart(p, op, spec, gate->named("weight"),
                           up->named("weight"), inputs);
  int64_t rows = p.rowsOf(op.getInput());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows, "gate, up", 2 * spec.n * spec.k * rows);
}

} // namespace

ArrayRef<OpLoweringRow> linearLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<GatedLinearOp, lowerGatedLinear>(),
      loweringOf<LinearOp, lowerLinear>(),
  };
  return rows;
}

} // namespace mlir::llm
