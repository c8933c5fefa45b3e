#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSERESIDUALPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-residual";

/// The residual operand of an op that adds one, or nothing.
static std::optional<MutableOperandRange> residualOf(Operation *op) {
  if (auto linear = dyn_cast_or_null<LinearOp>(op))
    return linear.getResidualMutable();
  if (auto sparse = dyn_cast_or_null<SparseLinearOp>(op))
    return sparse.getResidualMutable();
  if (auto expert = dyn_cast_or_null<ExpertLinearOp>(op); expert && expert.getCombine())
    return expert.getResidualMutable();
  return std::nullopt;
}

namespace {

/// add(h, linear(x, w)) ==> linear(x, w, residual h)
struct FuseResidual final : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    bool seen = false;
    // The right operand first: importers write the residual on the left.
    for (auto [product, other] : {std::pair(add.getRhs(), add.getLhs()), std::pair(add.getLhs(), add.getRhs())}) {
      Operation *op = product.getDefiningOp();
      std::optional<MutableOperandRange> residual = residualOf(op);
      if (!residual)
        continue;
      seen = true;
      if (!residual->empty() || !op->hasOneUse() || op->getBlock() != add->getBlock())
        continue;
      // At the place of the sum every operand is defined.
      rewriter.moveOpBefore(op, add);
      rewriter.modifyOpInPlace(op, [&] { residual->assign(other); });
      report(op, kPass, "residual added in the epilogue");
      rewriter.replaceOp(add, op->getResult(0));
      return success();
    }
    if (seen)
      return refuse(rewriter, add, kPass, "the product has other users, or a residual already");
    return rewriter.notifyMatchFailure(add, "no operand is a product");
  }
};

struct FuseResidualPass final : llm::impl::FuseResidualPassBase<FuseResidualPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseResidual>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
