// Norms, and the choice of rows before the last of them.
#include "codegen/Kernels/Norm.h"
#include "codegen/Kernels/RmsFactor.h"
#include "codegen/Lowering/LastRow.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// Whether the norm that alone uses `select` picks the row itself.
bool foldsIntoNorm(SelectRowsOp select) {
  return select->hasOneUse() &&
         isa<RmsNormOp, LayerNormOp>(*select->user_begin());
}

LogicalResult lowerSelect(ProgramLowering &p, SelectRowsOp op) {
  if (!isa<BlockArgument>(p.resolve(op.getRows())))
    return op.emitOpError("expects the rows that the function is given, but "
                          "got rows that are computed");
  Value x = p.view(op.getInput());
  // Row t is row t, and the only row is the last.
  if (!choosesLast(p) || p.rowsOf(op.getInput()) == 1) {
    p.setView(op.getResult(), x, p.rowsOf(op.getInput()));
    return success();
  }
  if (foldsIntoNorm(op)) {
    p.setView(op.getResult(), x, p.rowsOf(op.getInput()));
    return success();
  }
  return dispatchLast(p, op, op.getInput(), x, p.allocate(op.getResult(), 1),
                      "select_rows");
}

template <typename NormOp>
LogicalResult lowerNorm(ProgramLowering &p, NormOp op) {
  // A norm of each head takes the heads for rows; one that is as long as a
  // token's row takes them all together.
  int64_t width =
      cast<RankedTensorType>(op.getInput().getType()).getShape().back();
  if (op.getGamma())
    width = cast<RankedTensorType>(op.getGamma().getType()).getDimSize(0);
  const int64_t rowsAToken = p.rowElements(op.getInput()) / width;
  if constexpr (std::is_same_v<NormOp, RmsNormOp>)
    if (isa<QuantizedType>(
            cast<RankedTensorType>(op.getResult().getType()).getElementType())) {
      auto select =
          p.resolve(op.getInput()).template getDefiningOp<SelectRowsOp>();
      if (rowsAToken == 1 && !(select && foldsIntoNorm(select)))
        return quantizeRows(p, op, op, op.getInput(), op.getResult());
    }
  if (!cast<RankedTensorType>(op.getResult().getType())
           .getElementType()
           .isF32())
    return op.emitOpError("expects a result of f32, but got ")
           << op.getResult().getType();
  NormSpec spec;
  spec.width = width;
  spec.count = op.getCount().value_or(spec.width);
  spec.kind = isa<RmsNormOp>(op) ? "rms" : "layer";
  spec.eps = op.getEps().convertToDouble();
  if (!p.view(op.getInput()))
    return op.emitOpError("expects an input that is whole, but got a part of a "
                          "product; run llm-default-pipeline, which keeps them "
                          "apart");
  SmallVector<Operand> operands{{"x", p.view(op.getInput())}};
  auto addVector = [&](StringRef role, Value weight) -> LogicalResult {
    FailureOr<Value> view = p.vectorWeight(weight, op);
    if (succeeded(view))
      operands.push_back({role.str(), *view});
    return view;
  };
  if (op.getGamma()) {
    spec.scale = true;
    if (failed(addVector("gamma", op.getGamma())))
      return failure();
  }
  if constexpr (std::is_same_v<NormOp, LayerNormOp>)
    if (op.getBeta()) {
      spec.shift = true;
      if (failed(addVector("beta", op.getBeta())))
        return failure();
    }
  int64_t rows = p.rowsOf(op.getInput());
  auto select = p.resolve(op.getInput()).template getDefiningOp<SelectRowsOp>();
  if (select && choosesLast(p) && p.rowsOf(select.getInput()) > 1 &&
      foldsIntoNorm(select)) {
    spec.last = true;
    operands.push_back({"control", p.controlView()});
    rows = 1;
  }
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, NormSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows * rowsAToken, "norm");
}

LogicalResult lowerRmsScale(ProgramLowering &p, RmsScaleOp op) {
  if (llvm::all_of(op->getUsers(), [&](Operation *user) {
        return findsFactor(p, user, op.getResult());
      }))
    return success();
  RmsFactorSpec spec;
  spec.width = p.rowElements(op.getInput());
  spec.count = op.getCount().value_or(spec.width);
  spec.eps = op.getEps().convertToDouble();
  int64_t rows = p.rowsOf(op.getInput());
  Value y = p.allocate(op.getResult(), rows);
  return p.dispatch(op, RmsFactorSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", p.view(op.getInput())}, {"y", y}}, rows,
                    "norm factor");
}

} // namespace

ArrayRef<OpLoweringRow> normLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<LayerNormOp, lowerNorm<LayerNormOp>>(),
      loweringOf<RmsNormOp, lowerNorm<RmsNormOp>>(),
      loweringOf<RmsScaleOp, lowerRmsScale>(),
      loweringOf<SelectRowsOp, lowerSelect>(),
  };
  return rows;
}

} // namespace mlir::llm
