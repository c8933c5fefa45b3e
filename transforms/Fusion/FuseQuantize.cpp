#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSEQUANTIZEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-quantize";

namespace {

/// quantize(rms_norm(x)) ==> rms_norm(x) with a quantised result
struct FuseIntoNorm final : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp quantize, PatternRewriter &rewriter) const override {
    auto norm = quantize.getInput().getDefiningOp<RmsNormOp>();
    if (!norm)
      return rewriter.notifyMatchFailure(quantize, "no norm makes its input");
    const auto refusal = [&](const Twine &why) { return refuse(rewriter, quantize, kPass, why); };
    if (quantize.getClip())
      return refusal("the numbers are clipped");
    auto type = cast<RankedTensorType>(norm.getType());
    if (type.getRank() != 2)
      return refusal("the norm is of each head");
    if (isa<QuantizedType>(type.getElementType()) || !norm->hasOneUse())
      return refusal("the norm has other users");
    rewriter.modifyOpInPlace(norm, [&] { norm.getResult().setType(quantize.getType()); });
    rewriter.replaceOp(quantize, norm.getResult());
    report(norm, kPass, "quantises its result");
    return success();
  }
};

/// quantize(gated_activation(g, u)) ==> gated_activation(g, u) with a quantised result; also gated_linear
template <typename GatedOp> struct FuseIntoGate final : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern<QuantizeOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp quantize, PatternRewriter &rewriter) const override {
    auto gated = quantize.getInput().getDefiningOp<GatedOp>();
    if (!gated)
      return rewriter.notifyMatchFailure(quantize, "no gated activation makes its input");
    const auto refusal = [&](const Twine &why) { return refuse(rewriter, quantize, kPass, why); };
    if (quantize.getClip())
      return refusal("the numbers are clipped");
    auto type = cast<RankedTensorType>(gated.getType());
    if (type.getRank() != 2)
      return refusal("the gated activation is of each head");
    if (isa<QuantizedType>(type.getElementType()) || !gated->hasOneUse())
      return refusal("the gated activation has other users");
    rewriter.modifyOpInPlace(gated, [&] { gated.getResult().setType(quantize.getType()); });
    rewriter.replaceOp(quantize, gated.getResult());
    report(gated, kPass, "quantises its result");
    return success();
  }
};

/// linear(dequantize(quantize(x)), w) ==> linear(quantize(x), w), where nothing is folded into the input
struct FuseIntoProduct final : OpRewritePattern<DequantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DequantizeOp dequantize, PatternRewriter &rewriter) const override {
    if (!isa_and_present<QuantizeOp, RmsNormOp, GatedActivationOp, GatedLinearOp>(dequantize.getInput().getDefiningOp()))
      return rewriter.notifyMatchFailure(dequantize, "not of an activation");
    bool changed = false;
    for (OpOperand &use : llvm::make_early_inc_range(dequantize->getUses())) {
      const auto takes = [&](auto product) {
        return product && use.getOperandNumber() == 0 && !product.getGamma() && !product.getRowScale();
      };
      if (!takes(dyn_cast<LinearOp>(use.getOwner())) && !takes(dyn_cast<GatedLinearOp>(use.getOwner())))
        continue;
      rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(dequantize.getInput()); });
      report(use.getOwner(), kPass, "reads a quantised input");
      changed = true;
    }
    if (dequantize->use_empty())
      rewriter.eraseOp(dequantize);
    return success(changed);
  }
};

struct FuseQuantizePass final : llm::impl::FuseQuantizePassBase<FuseQuantizePass> {
  using FuseQuantizePassBase::FuseQuantizePassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseIntoNorm, FuseIntoGate<GatedActivationOp>, FuseIntoGate<GatedLinearOp>, FuseIntoProduct>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
