// Folders and canonicalisations of compute and elementwise ops, and of layers.
#include "dialects/LLM/InlineValues.h"
#include "dialects/LLM/Verify.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::llm;

//===- Elementwise ------------------------------------------------------===//

/// add(x, 0) ==> x, but for the sign of a zero
OpFoldResult AddOp::fold(FoldAdaptor) {
  if (isInlineSplat(getRhs(), 0))
    return getLhs();
  return isInlineSplat(getLhs(), 0) ? OpFoldResult(getRhs()) : OpFoldResult();
}

/// multiply(x, 1) ==> x
OpFoldResult MultiplyOp::fold(FoldAdaptor) {
  return isInlineSplat(getRhs(), 1) ? OpFoldResult(getLhs()) : OpFoldResult();
}

/// relu(relu(x)) ==> relu(x)
OpFoldResult ActivationOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<ActivationOp>();
  bool twice = inner && getKind() == ActivationKind::Relu &&
               inner.getKind() == ActivationKind::Relu;
  return twice && getInput().getType() == getType() ? OpFoldResult(getInput())
                                                    : OpFoldResult();
}

/// scale(x, 1) ==> x
OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return number(getFactor()) == 1.0f ? OpFoldResult(getInput())
                                     : OpFoldResult();
}

/// scale(scale(x, a), b) ==> scale(x, a*b), where a*b is exact
LogicalResult ScaleOp::canonicalize(ScaleOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<ScaleOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "input is not scaled");
  APFloat product = inner.getFactor();
  if (product.multiply(op.getFactor(), APFloat::rmNearestTiesToEven) !=
      APFloat::opOK)
    return rewriter.notifyMatchFailure(op,
                                       "product of the factors is not exact");
  rewriter.modifyOpInPlace(op, [&] {
    op.getInputMutable().assign(inner.getInput());
    op.setFactor(product);
  });
  return success();
}

//===- Operands and attributes that say nothing ---------------------------===//

/// Drops an optional operand that is `number` throughout.
static bool dropSplat(PatternRewriter &rewriter, Operation *op,
                      MutableOperandRange operand, double number) {
  if (operand.empty() || !isInlineSplat(operand[0].get(), number))
    return false;
  rewriter.modifyOpInPlace(op, [&] { operand.clear(); });
  return true;
}

/// Drops an optional factor of 1.
template <typename Remove>
static bool dropOne(PatternRewriter &rewriter, Operation *op,
                    const std::optional<APFloat> &factor, Remove remove) {
  if (!factor || number(*factor) != 1.0f)
    return false;
  rewriter.modifyOpInPlace(op, remove);
  return true;
}

/// embedding(…) scale(1) ==> embedding(…)
LogicalResult EmbeddingOp::canonicalize(EmbeddingOp op,
                                        PatternRewriter &rewriter) {
  return success(
      dropOne(rewriter, op, op.getScale(), [&] { op.removeScaleAttr(); }));
}

/// rms_norm(x) gamma(1) ==> rms_norm(x); a count equal to the width goes too
LogicalResult RmsNormOp::canonicalize(RmsNormOp op, PatternRewriter &rewriter) {
  auto input = op.getInput().getType();
  // A gamma as long as a row of heads says over what the mean is taken.
  bool overHead = !op.getGamma() || op.getGamma().getType().getDimSize(0) ==
                                        input.getShape().back();
  bool changed = overHead && dropSplat(rewriter, op, op.getGammaMutable(), 1);
  if (overHead && op.getCount() && *op.getCount() == input.getShape().back()) {
    rewriter.modifyOpInPlace(op, [&] { op.removeCountAttr(); });
    changed = true;
  }
  return success(changed);
}

/// layer_norm(x) gamma(1) beta(0) ==> layer_norm(x)
LogicalResult LayerNormOp::canonicalize(LayerNormOp op,
                                        PatternRewriter &rewriter) {
  bool gamma = dropSplat(rewriter, op, op.getGammaMutable(), 1);
  return success(dropSplat(rewriter, op, op.getBetaMutable(), 0) || gamma);
}

/// linear(x, w) gamma(1) bias(0) residual(0) ==> linear(x, w)
LogicalResult LinearOp::canonicalize(LinearOp op, PatternRewriter &rewriter) {
  bool gamma = dropSplat(rewriter, op, op.getGammaMutable(), 1);
  bool scale = dropSplat(rewriter, op, op.getRowScaleMutable(), 1);
  bool bias = dropSplat(rewriter, op, op.getBiasMutable(), 0);
  return success(dropSplat(rewriter, op, op.getResidualMutable(), 0) || gamma ||
                 scale || bias);
}

/// gated_linear(x, …) gamma(1) ==> gated_linear(x, …)
LogicalResult GatedLinearOp::canonicalize(GatedLinearOp op,
                                          PatternRewriter &rewriter) {
  bool gamma = dropSplat(rewriter, op, op.getGammaMutable(), 1);
  return success(dropSplat(rewriter, op, op.getRowScaleMutable(), 1) || gamma);
}

/// sparse_linear(x, …) residual(0) ==> sparse_linear(x, …)
LogicalResult SparseLinearOp::canonicalize(SparseLinearOp op,
                                           PatternRewriter &rewriter) {
  return success(dropSplat(rewriter, op, op.getResidualMutable(), 0));
}

/// rope(x) scale(1) amplitude(1) dims(E) ==> rope(x)
LogicalResult RopeOp::canonicalize(RopeOp op, PatternRewriter &rewriter) {
  bool changed =
      dropOne(rewriter, op, op.getScale(), [&] { op.removeScaleAttr(); });
  changed |= dropOne(rewriter, op, op.getAmplitude(),
                     [&] { op.removeAmplitudeAttr(); });
  if (op.getDims() &&
      *op.getDims() == op.getInput().getType().getShape().back()) {
    rewriter.modifyOpInPlace(op, [&] { op.removeDimsAttr(); });
    changed = true;
  }
  return success(changed);
}

//===- hadamard, layer --------------------------------------------------===//

/// hadamard(x) block(1) ==> x, and a transform after its inverse ==> x
OpFoldResult HadamardOp::fold(FoldAdaptor) {
  if (getBlock() == 1 && !getSigns())
    return getInput();
  auto inner = getInput().getDefiningOp<HadamardOp>();
  // Without signs the transform is its own inverse.
  if (!inner || inner.getBlock() != getBlock() ||
      inner.getSignsAttr() != getSignsAttr() ||
      (getSigns() && inner.getInverse() == getInverse()))
    return {};
  return inner.getInput();
}

/// layer(x) { yield x } ==> x
LogicalResult LayerOp::canonicalize(LayerOp op, PatternRewriter &rewriter) {
  YieldOp yield = op.getYield();
  if (&op.getBodyBlock()->front() != yield.getOperation())
    return rewriter.notifyMatchFailure(op, "the layer does something");
  SmallVector<Value> values;
  for (Value value : yield.getValues()) {
    auto argument = dyn_cast<BlockArgument>(value);
    bool own = argument && argument.getOwner() == op.getBodyBlock();
    values.push_back(own ? op.getInputs()[argument.getArgNumber()] : value);
  }
  rewriter.replaceOp(op, values);
  return success();
}
