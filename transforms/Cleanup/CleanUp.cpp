#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CLEANUPPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {

/// rms_scale(x) count(D) ==> rms_scale(x), for an x of width D; also layer_norm
template <typename NormOp> struct DropCount final : OpRewritePattern<NormOp> {
  using OpRewritePattern<NormOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(NormOp norm, PatternRewriter &rewriter) const override {
    const int64_t width = cast<ShapedType>(norm.getInput().getType()).getShape().back();
    if (!norm.getCount() || int64_t(*norm.getCount()) != width)
      return rewriter.notifyMatchFailure(norm, "no count, or another number than the width");
    rewriter.modifyOpInPlace(norm, [&] { norm.removeCountAttr(); });
    return success();
  }
};

/// scale(embedding(ids, table), s) ==> embedding(ids, table) scale(s)
struct ScaleEmbedding final : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp scale, PatternRewriter &rewriter) const override {
    auto embedding = scale.getInput().getDefiningOp<EmbeddingOp>();
    if (!embedding || !embedding->hasOneUse())
      return rewriter.notifyMatchFailure(scale, "input is not an embedding of its own");
    if (embedding.getScale())
      return rewriter.notifyMatchFailure(scale, "the embedding is scaled already");
    rewriter.modifyOpInPlace(embedding, [&] { embedding.setScaleAttr(scale.getFactorAttr()); });
    rewriter.replaceOp(scale, embedding.getResult());
    return success();
  }
};

struct CleanUpPass final : llm::impl::CleanUpPassBase<CleanUpPass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<DropCount<RmsScaleOp>, DropCount<LayerNormOp>, ScaleEmbedding>(context);
    for (RegisteredOperationName name : context->getRegisteredOperations())
      if (name.getDialectNamespace() == LLMDialect::getDialectNamespace())
        name.getCanonicalizationPatterns(set, context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
