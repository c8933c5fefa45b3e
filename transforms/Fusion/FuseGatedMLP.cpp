#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSEGATEDMLPPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-gated-mlp";

namespace {

/// gated_activation(linear(x, g), linear(x, u)) ==> gated_linear(x, g, u)
struct FuseGatedMLP final : OpRewritePattern<GatedActivationOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatedActivationOp activation, PatternRewriter &rewriter) const override {
    auto gate = activation.getGate().getDefiningOp<LinearOp>();
    auto up = activation.getUp().getDefiningOp<LinearOp>();
    if (!gate || !up)
      return rewriter.notifyMatchFailure(activation, "gate or up is not a product");
    const auto refusal = [&](const Twine &why) { return refuse(rewriter, activation, kPass, why); };
    if (!gate->hasOneUse() || !up->hasOneUse())
      return refusal("gate or up has other users");
    if (gate.getBias() || up.getBias() || gate.getResidual() || up.getResidual())
      return refusal("gate or up has a bias or a residual");
    if (gate.getInput() != up.getInput() || gate.getGamma() != up.getGamma() ||
        gate.getRowScale() != up.getRowScale())
      return refusal("gate and up read different rows");
    if (gate.getWeight().getType() != up.getWeight().getType())
      return refusal("gate and up have weights of different types");
    if (cast<ShapedType>(activation.getType()).getRank() != 2 ||
        cast<ShapedType>(gate.getWeight().getType()).getRank() != 2)
      return refusal("gate and up are products of heads");
    auto fused = rewriter.replaceOpWithNewOp<GatedLinearOp>(
        activation, activation.getType(), activation.getKindAttr(), gate.getInput(), gate.getWeight(), up.getWeight(),
        gate.getGamma(), gate.getRowScale());
    report(fused, kPass, "gate and up joined");
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
    return success();
  }
};

struct FuseGatedMLPPass final : llm::impl::FuseGatedMLPPassBase<FuseGatedMLPPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseGatedMLP>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
