#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/Cleanup/WeightExpressions.h"
#include "transforms/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CLEANUPPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {

/// rms_norm(x) count(D) ==> rms_norm(x), for an x of width D; also rms_scale, layer_norm
template <typename NormOp> struct DropCount final : OpRewritePattern<NormOp> {
  using OpRewritePattern<NormOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(NormOp norm, PatternRewriter &rewriter) const override {
    if (!norm.getCount())
      return rewriter.notifyMatchFailure(norm, "no count is given");
    int64_t width = cast<ShapedType>(norm.getInput().getType()).getShape().back();
    if constexpr (std::is_same_v<NormOp, RmsNormOp>)
      if (norm.getGamma()) // a gamma of a whole row says that the row is normalised
        width = cast<ShapedType>(norm.getGamma().getType()).getDimSize(0);
    if (int64_t(*norm.getCount()) != width)
      return rewriter.notifyMatchFailure(norm, "the count is another number than the width");
    rewriter.modifyOpInPlace(norm, [&] { norm.removeCountAttr(); });
    return success();
  }
};

/// rope(x) dims(E) scale(1) amplitude(1) ==> rope(x), for heads of size E
struct DropRopeDefaults final : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp rope, PatternRewriter &rewriter) const override {
    const auto isOne = [](std::optional<APFloat> value) { return value && value->isExactlyValue(1.0); };
    const bool dims = rope.getDims() && int64_t(*rope.getDims()) == rope.getInput().getType().getShape().back();
    const bool scale = isOne(rope.getScale()), amplitude = isOne(rope.getAmplitude());
    if (!dims && !scale && !amplitude)
      return rewriter.notifyMatchFailure(rope, "no attribute repeats a default");
    rewriter.modifyOpInPlace(rope, [&] {
      if (dims)
        rope.removeDimsAttr();
      if (scale)
        rope.removeScaleAttr();
      if (amplitude)
        rope.removeAmplitudeAttr();
    });
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
    set.add<DropCount<RmsNormOp>, DropCount<RmsScaleOp>, DropCount<LayerNormOp>, DropRopeDefaults, ScaleEmbedding>(
        context);
    populateWeightExpressionPatterns(set);
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
