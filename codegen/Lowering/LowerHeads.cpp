// Heads of a token that are put together from two parts.
#include "codegen/Kernels/CosineGate.h"
#include "codegen/Kernels/JoinHeads.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// What is gathered where `value` repeats one head for all, or null.
Value sharedHead(Value value) {
  auto gather = value.getDefiningOp<GatherOp>();
  if (!gather || gather.getAxis() != 1)
    return {};
  auto heads = cast<RankedTensorType>(gather.getInput().getType());
  return heads.getRank() == 3 && heads.getDimSize(1) == 1 ? gather.getInput()
                                                          : Value();
}

/// Has no dispatch of its own: what joins the heads reads one for all.
LogicalResult lowerGather(ProgramLowering &p, GatherOp op) {
  if (sharedHead(op.getResult()) &&
      llvm::all_of(op->getUsers(), llvm::IsaPred<ConcatOp>))
    return success();
  if (cast<RankedTensorType>(op.getInput().getType()).getRank() == 2)
    return gatherColumns(p, op);
  return op.emitOpError("expects one head that is repeated for others to be "
                        "joined to it, for other gathers of activations are not "
                        "supported on devices, but got ")
         << op.getInput().getType() << " along axis " << op.getAxis();
}

LogicalResult lowerConcat(ProgramLowering &p, ConcatOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (op.getInputs().size() != 2 || type.getRank() != 3 || op.getAxis() != 2 ||
      !type.getElementType().isF32())
    return op.emitOpError("expects two parts of heads of f32, for other "
                          "activations are not joined on devices, but got ")
           << op.getInputs().size() << " parts of " << type << " along axis "
           << op.getAxis();
  JoinHeadsSpec spec;
  spec.heads = type.getDimSize(1);
  Value parts[2];
  bool shared[2];
  int64_t sizes[2];
  for (unsigned i = 0; i < 2; ++i) {
    Value part = op.getInputs()[i];
    sizes[i] = cast<RankedTensorType>(part.getType()).getDimSize(2);
    Value one = sharedHead(part);
    shared[i] = bool(one);
    parts[i] = p.view(one ? one : part);
  }
  spec.first = sizes[0], spec.second = sizes[1];
  spec.firstShared = shared[0], spec.secondShared = shared[1];
  const int64_t rows = p.width();
  return p.dispatch(op, JoinHeadsSpec::kFamily, spec.toAttr(p.context()),
                    {{"a", parts[0]},
                     {"b", parts[1]},
                     {"y", p.allocate(op.getResult(), rows)}},
                    rows, "join heads");
}

LogicalResult lowerCosineGate(ProgramLowering &p, CosineGateOp op) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  CosineGateSpec spec;
  spec.heads = type.getDimSize(1), spec.headSize = type.getDimSize(2);
  spec.eps = op.getEps().convertToDouble();
  const int64_t rows = p.rowsOf(op.getQuery());
  return p.dispatch(op, CosineGateSpec::kFamily, spec.toAttr(p.context()),
                    {{"q", p.view(op.getQuery())},
                     {"k", p.view(op.getKey())},
                     {"v", p.view(op.getValue())},
                     {"y", p.allocate(op.getResult(), rows)}},
                    rows, "cosine gate");
}

} // namespace

ArrayRef<OpLoweringRow> headLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<CosineGateOp, lowerCosineGate>(),
      loweringOf<ConcatOp, lowerConcat>(),
      loweringOf<GatherOp, lowerGather>(),
  };
  return rows;
}

} // namespace mlir::llm
