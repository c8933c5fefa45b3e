// Operations on single numbers that no fusion took into a product.
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult emit(ProgramLowering &p, Operation *op, ElementwiseSpec spec,
                   ArrayRef<Operand> inputs) {
  Value result = op->getResult(0);
  if (!cast<RankedTensorType>(result.getType()).getElementType().isF32())
    return op->emitOpError("expects a result of f32, but got ")
           << result.getType();
  spec.width = p.rowElements(result);
  int64_t rows = p.rowsOf(op->getOperand(0));
  SmallVector<Operand> operands(inputs);
  operands.push_back({"y", p.allocate(result, rows)});
  return p.dispatch(op, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                    operands, rows, op->getName().stripDialect());
}

LogicalResult lowerAdd(ProgramLowering &p, AddOp op) {
  ElementwiseSpec spec;
  spec.op = "add";
  return emit(p, op, spec,
              {{"a", p.view(op.getLhs())}, {"b", p.view(op.getRhs())}});
}

LogicalResult lowerScale(ProgramLowering &p, ScaleOp op) {
  ElementwiseSpec spec;
  spec.op = "scale";
  spec.number = op.getFactor().convertToDouble();
  return emit(p, op, spec, {{"x", p.view(op.getInput())}});
}

LogicalResult lowerSoftcap(ProgramLowering &p, SoftcapOp op) {
  ElementwiseSpec spec;
  spec.op = "softcap";
  spec.number = op.getCap().convertToDouble();
  return emit(p, op, spec, {{"x", p.view(op.getInput())}});
}

LogicalResult lowerActivation(ProgramLowering &p, ActivationOp op) {
  ElementwiseSpec spec;
  spec.op = "activation";
  spec.kind = stringifyActivationKind(op.getKind());
  return emit(p, op, spec, {{"x", p.view(op.getInput())}});
}

LogicalResult lowerGated(ProgramLowering &p, GatedActivationOp op) {
  ElementwiseSpec spec;
  spec.op = "gated";
  spec.kind = stringifyActivationKind(op.getKind());
  return emit(p, op, spec,
              {{"a", p.view(op.getGate())}, {"b", p.view(op.getUp())}});
}

} // namespace

ArrayRef<OpLoweringRow> elementwiseLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<ActivationOp, lowerActivation>(),
      loweringOf<AddOp, lowerAdd>(),
      loweringOf<GatedActivationOp, lowerGated>(),
      loweringOf<ScaleOp, lowerScale>(),
      loweringOf<SoftcapOp, lowerSoftcap>(),
  };
  return rows;
}

} // namespace mlir::llm
