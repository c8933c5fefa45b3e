// Token ids to activations.
#include "codegen/Kernels/Embedding.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult lowerEmbedding(ProgramLowering &p, EmbeddingOp op) {
  auto ids = dyn_cast<BlockArgument>(p.resolve(op.getIds()));
  if (!ids || ids.getArgNumber() != 0)
    return op.emitOpError("expects the token ids that the function is given, "
                          "but got ids that are computed");
  FailureOr<WeightOperand> table = p.tiledWeight(op.getTable(), op);
  if (failed(table))
    return failure();
  EmbeddingSpec spec;
  spec.format = sprig::quant::info(table->layout.format).name;
  spec.rows = int64_t(table->layout.N);
  spec.width = int64_t(table->layout.K);
  spec.capacity = p.target().capacity();
  spec.scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
  SmallVector<Operand> operands = table->named("table");
  for (auto [operand, plane] : llvm::zip_equal(operands, table->layout.planes))
    operand.touched = int64_t(table->layout.units * plane.unitBytes) *
                      p.width(); // one row a token
  operands.push_back({"control", p.controlView()});
  operands.push_back({"history", p.historyView(), 4 * p.width()});
  operands.push_back({"y", p.allocate(op.getResult(), p.width())});
  return p.dispatch(op, EmbeddingSpec::kFamily, spec.toAttr(p.context()),
                    operands, p.width(), "embedding");
}

} // namespace

ArrayRef<OpLoweringRow> embeddingLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<EmbeddingOp, lowerEmbedding>()};
  return rows;
}

} // namespace mlir::llm
