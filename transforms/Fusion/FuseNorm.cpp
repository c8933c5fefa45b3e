#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSENORMPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-norm";

/// Whether `use` is the `x` of a product that a norm can be folded into.
static bool canTake(OpOperand &use) {
  const auto check = [&](auto product) {
    return use.getOperandNumber() == product.getInputMutable().getOperandNumber() && !product.getGamma() &&
           !product.getRowScale();
  };
  if (auto linear = dyn_cast<LinearOp>(use.getOwner()))
    // A weight `HxNxK` sums over the heads apart, and gamma would be needed for each.
    return check(linear) && cast<ShapedType>(linear.getWeight().getType()).getRank() == 2;
  if (auto gated = dyn_cast<GatedLinearOp>(use.getOwner()))
    return check(gated);
  return false;
}

namespace {

/// linear(rms_norm(x, g), w) ==> linear(x, w, gamma g, row_scale rms_scale(x))
struct FuseNorm final : OpRewritePattern<RmsNormOp> {
  FuseNorm(MLIRContext *context, unsigned maxUsers) : OpRewritePattern(context), maxUsers(maxUsers) {}

  LogicalResult matchAndRewrite(RmsNormOp norm, PatternRewriter &rewriter) const override {
    if (norm->use_empty())
      return rewriter.notifyMatchFailure(norm, "the norm has no users");
    const auto refusal = [&](const Twine &why) { return refuse(rewriter, norm, kPass, why); };
    auto type = cast<RankedTensorType>(norm.getInput().getType());
    if (norm.getResult().getType() != type)
      return refusal("the norm quantises its result");
    if (type.getRank() != 2)
      return refusal("the norm is of each head");
    if (!llvm::all_of(norm->getUses(), canTake))
      return refusal("a user of the norm is not a product without a norm");
    if (maxUsers != 0 && size_t(std::distance(norm->use_begin(), norm->use_end())) > maxUsers)
      return refusal("more products read the norm than max-users");

    auto rowScale = RmsScaleOp::create(rewriter, norm.getLoc(), norm.getInput(), norm.getEpsAttr(), norm.getCountAttr());
    for (OpOperand &use : llvm::make_early_inc_range(norm->getUses())) {
      const auto fold = [&](auto product) {
        rewriter.modifyOpInPlace(product, [&] {
          product.getInputMutable().assign(norm.getInput());
          if (norm.getGamma())
            product.getGammaMutable().assign(norm.getGamma());
          product.getRowScaleMutable().assign(rowScale.getResult());
        });
        report(product, kPass, "norm folded into the product");
      };
      if (auto linear = dyn_cast<LinearOp>(use.getOwner()))
        fold(linear);
      else
        fold(cast<GatedLinearOp>(use.getOwner()));
    }
    rewriter.eraseOp(norm);
    return success();
  }

  unsigned maxUsers;
};

struct FuseNormPass final : llm::impl::FuseNormPassBase<FuseNormPass> {
  using FuseNormPassBase::FuseNormPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseNorm>(&getContext(), maxUsers);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
