// Token ids to activations.
#include "codegen/Kernels/Embedding.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult lowerEmbedding(ProgramLowering &p, EmbeddingOp op) {
  Value source = p.resolve(op.getIds());
  auto ids = dyn_cast<BlockArgument>(source);
  auto mask = source.getDefiningOp<TreeMaskOp>();
  const bool depths = mask && source == mask.getDepths();
  if (!depths && (!ids || ids.getArgNumber() > 1))
    return op.emitOpError("expects the token ids or the positions that the "
                          "function is given, but got ids that are computed");
  FailureOr<WeightOperand> table = p.tiledWeight(op.getTable(), op);
  if (failed(table))
    return failure();
  EmbeddingSpec spec;
  spec.format = sprig::quant::info(table->layout.format).name;
  spec.rows = int64_t(table->layout.N);
  spec.width = int64_t(table->layout.K);
  spec.capacity = p.target().capacity();
  // Only ids lie in the history of a step over a tree.
  spec.tree = depths && mask.getBase();
  spec.positions = spec.tree || ids.getArgNumber() == 1;
  spec.scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
  FailureOr<KernelInterface> interface =
      spec.interface(p.profile(), [&] { return op.emitOpError(); });
  if (failed(interface))
    return failure();

  // A table that no binding can span is read in parts, each by the tokens that
  // are in it.
  const int64_t all = spec.rows, part = p.rowsWithin(*interface, all);
  if (part == 0)
    return op.emitOpError("expects a table of which ")
           << ProgramLowering::kRowsOfAPart << " rows fit a binding of target '"
           << p.profile().name << "', but rows are " << spec.width << " wide";
  Value y = p.allocate(op.getResult(), p.width());
  for (spec.first = 0; spec.first < all; spec.first += part) {
    spec.rows = std::min(part, all - spec.first);
    spec.table = part == all ? 0 : all;
    FailureOr<WeightOperand> rows =
        p.rowsOfWeight(op.getTable(), spec.first, spec.rows, op);
    if (failed(rows))
      return failure();
    SmallVector<Operand> operands = rows->named("table");
    // One row a token.
    if (operands.size() != rows->layout.planes.size())
      operands[0].touched = int64_t(rows->layout.rowBytes) * p.width();
    else
      for (auto [operand, plane] :
           llvm::zip_equal(operands, rows->layout.planes))
        operand.touched =
            spec.first ? 0
                       : int64_t(plane.pieces * plane.unitBytes) * p.width();
    p.addFormatTable(rows->layout.format, operands);
    operands.push_back({"control", p.controlView()});
    operands.push_back({"history", p.historyView(), 4 * p.width()});
    operands.push_back({"y", y});
    if (failed(p.dispatch(op, EmbeddingSpec::kFamily, spec.toAttr(p.context()),
                          operands, p.width(), "embedding")))
      return failure();
  }
  return success();
}

} // namespace

ArrayRef<OpLoweringRow> embeddingLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<EmbeddingOp, lowerEmbedding>()};
  return rows;
}

} // namespace mlir::llm
