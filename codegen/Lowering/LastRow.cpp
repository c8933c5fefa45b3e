#include "codegen/Lowering/LastRow.h"
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Lowering/OpLowerings.h"
#include "lib/Weights/WeightExpr.h"

namespace mlir::llm {
namespace {

/// Activations of one row a token.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.isDynamicDim(0) &&
         type.getElementType().isF32();
}

/// Operands of `op` that are not weights.
SmallVector<Value> inputsOf(ProgramLowering &p, Operation *op) {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (!isWeightExpr(operand))
      inputs.push_back(p.resolve(operand));
  return inputs;
}

/// Whether a row of the result is made of the same row of the inputs, by a
/// lowering that takes the number of rows from them.
bool isByRow(ProgramLowering &p, Operation *op) {
  return isa<ActivationOp, AddOp, GatedActivationOp, GatedLinearOp, LayerNormOp,
             LinearOp, RmsNormOp, RmsScaleOp, ScaleOp>(op) &&
         hasRows(op->getResult(0)) && llvm::all_of(inputsOf(p, op), hasRows);
}

} // namespace

bool choosesLast(ProgramLowering &p) {
  return p.kind() == plan::ProgramKind::sample && p.width() > 1;
}

LastRow LastRow::of(ProgramLowering &p) {
  if (!choosesLast(p) || hiddenToLeave(p))
    return {};
  llvm::DenseMap<Value, SmallVector<Operation *>> users;
  llvm::DenseMap<Operation *, size_t> order;
  ArrayRef<FlatOp> ops = p.function().ops();
  for (auto [i, entry] : llvm::enumerate(ops)) {
    order[entry.op] = i;
    if (p.isNeeded(entry.op))
      for (Value input : inputsOf(p, entry.op))
        users[input].push_back(entry.op);
  }
  // From the end: one row is enough where one row is enough of all users.
  llvm::DenseSet<Operation *> narrow;
  LastRow found;
  bool saves = false;
  for (const FlatOp &entry : llvm::reverse(ops)) {
    if (!p.isNeeded(entry.op) || entry.op->getNumResults() != 1)
      continue;
    const auto &after = users[entry.op->getResult(0)];
    if (!after.empty() && isByRow(p, entry.op) &&
        llvm::all_of(after, [&](Operation *user) {
          return isa<SelectRowsOp>(user) || narrow.contains(user);
        })) {
      narrow.insert(entry.op);
      found.first = entry.op;
      saves |= isa<LinearOp, GatedLinearOp>(entry.op);
    }
  }
  if (!saves)
    return {};
  llvm::SetVector<Value> values;
  for (const FlatOp &entry : ops)
    if (narrow.contains(entry.op))
      for (Value input : inputsOf(p, entry.op))
        if (!narrow.contains(input.getDefiningOp()))
          values.insert(input);
  // All of them are there before `first`, and nobody wants their other rows
  // after it.
  const size_t at = order[found.first];
  for (Value value : values) {
    Operation *maker = value.getDefiningOp();
    if (!maker || order[maker] > at ||
        llvm::any_of(users[value], [&](Operation *user) {
          return order[user] > at && !narrow.contains(user);
        }))
      return {};
  }
  found.values = values.takeVector();
  return found;
}

LogicalResult dispatchLast(ProgramLowering &p, Operation *op, Value input,
                           Value x, Value y, StringRef what) {
  ElementwiseSpec spec;
  spec.op = "last";
  spec.width = p.rowElements(input);
  return p.dispatch(op, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", x}, {"control", p.controlView()}, {"y", y}}, 1,
                    what);
}

LogicalResult pickLastRow(ProgramLowering &p, const LastRow &rows) {
  // Parts of a product that were never put together have no view.
  if (llvm::any_of(rows.values, [&](Value value) { return !p.view(value); }))
    return success();
  for (Value value : rows.values) {
    const uint64_t bytes =
        uint64_t(p.paddedRows(1) * p.rowElements(value)) * 4;
    Value row = p.scratch("last row", bytes);
    if (failed(dispatchLast(p, rows.first, value, p.view(value), row,
                            "last row")))
      return failure();
    p.setView(value, row, 1);
  }
  return success();
}

} // namespace mlir::llm
