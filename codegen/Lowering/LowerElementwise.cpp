// Operations on single numbers that no fusion took into a product.
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/Hadamard.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult emit(ProgramLowering &p, Operation *op, ElementwiseSpec spec,
                   ArrayRef<Operand> inputs) {
  Value result = op->getResult(0);
  Type element = cast<RankedTensorType>(result.getType()).getElementType();
  if (!element.isF32() && !isa<QuantizedType>(element))
    return op->emitOpError("expects a result of f32, but got ")
           << result.getType();
  spec.width = p.rowElements(result);
  int64_t rows = p.rowsOf(op->getOperand(0));
  SmallVector<Operand> operands(inputs);
  operands.push_back({"y", p.allocate(result, rows)});
  if (failed(p.dispatch(op, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                        operands, rows, op->getName().stripDialect())))
    return failure();
  return roundResult(p, op);
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

/// Columns of activations; those of weights are expressions, which the package
/// has as their numbers.
LogicalResult byColumn(ProgramLowering &p, Operation *op, StringRef kind,
                       Value vector, int64_t axis, int64_t from) {
  const int64_t last =
      cast<RankedTensorType>(op->getOperand(0).getType()).getRank() - 1;
  if (axis != last)
    return op->emitOpError("expects the last axis of activations, but got axis ")
           << axis;
  FailureOr<Value> numbers = p.vectorWeight(vector, op);
  if (failed(numbers))
    return failure();
  ElementwiseSpec spec;
  spec.op = kind;
  spec.from = from;
  return emit(p, op, spec, {{"x", p.view(op->getOperand(0))}, {"b", *numbers}});
}

LogicalResult lowerScaleAxis(ProgramLowering &p, ScaleAxisOp op) {
  return byColumn(
      p, op, "scale_columns", op.getFactors(), op.getAxis(),
      cast<RankedTensorType>(op.getFactors().getType()).getDimSize(0));
}

/// A transform of activations; queries and keys on their way to a cache are
/// transformed by the append.
LogicalResult lowerHadamard(ProgramLowering &p, HadamardOp op) {
  if (llvm::all_of(op->getUsers(),
                   llvm::IsaPred<KVAppendOp, AttentionOp, TreeAttentionOp>)) {
    if (op.getSigns() || op.getInverse())
      return op.emitOpError("expects a plain transform of queries and keys, but "
                            "got signs or an inverse");
    return success();
  }
  HadamardSpec spec;
  spec.width = p.rowElements(op.getInput());
  spec.block = int64_t(op.getBlock());
  spec.inverse = op.getInverse();
  if (!p.view(op.getInput()))
    return op.emitOpError("expects an input that is whole, but got a part of a "
                          "product");
  SmallVector<Operand> operands{{"x", p.view(op.getInput())}};
  if (auto words = op.getSigns()) {
    const int64_t last =
        cast<RankedTensorType>(op.getInput().getType()).getShape().back();
    std::vector<float> signs;
    for (int64_t i = 0; i < spec.width; ++i)
      signs.push_back((*words)[size_t(i % last / 64)] >> (i % last % 64) & 1
                          ? -1.0f
                          : 1.0f);
    auto type = RankedTensorType::get({spec.width}, p.ops().getF32Type());
    spec.signs = true;
    operands.push_back(
        {"signs", p.constant("hadamard.signs",
                             DenseElementsAttr::get(type, ArrayRef(signs)))});
  }
  const int64_t rows = p.rowsOf(op.getInput());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, HadamardSpec::kFamily, spec.toAttr(p.context()),
                    operands, rows, "hadamard");
}

} // namespace

LogicalResult gatherColumns(ProgramLowering &p, GatherOp op) {
  return byColumn(p, op, "gather", op.getIndex(), op.getAxis(),
                  p.rowElements(op.getInput()));
}

ArrayRef<OpLoweringRow> elementwiseLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<ActivationOp, lowerActivation>(),
      loweringOf<AddOp, lowerAdd>(),
      loweringOf<GatedActivationOp, lowerGated>(),
      loweringOf<HadamardOp, lowerHadamard>(),
      loweringOf<ScaleOp, lowerScale>(),
      loweringOf<ScaleAxisOp, lowerScaleAxis>(),
      loweringOf<SoftcapOp, lowerSoftcap>(),
  };
  return rows;
}

} // namespace mlir::llm
