// Folders and canonicalisations.
#include "dialects/LLM/Verify.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::llm;

/// An inline weight of zeros, of either sign: x + 0 is x but for the sign of a
/// zero.
static bool isInlineZero(Value value) {
  auto weight = value.getDefiningOp<WeightOp>();
  if (!weight || !weight.isInline())
    return false;
  auto splat = dyn_cast<SplatElementsAttr>(weight.getValueAttr());
  auto zero = splat ? dyn_cast<FloatAttr>(splat.getSplatValue<Attribute>())
                    : FloatAttr();
  return zero && zero.getValue().isZero();
}

/// add(x, 0) ==> x
OpFoldResult AddOp::fold(FoldAdaptor) {
  if (isInlineZero(getRhs()))
    return getLhs();
  return isInlineZero(getLhs()) ? OpFoldResult(getRhs()) : OpFoldResult();
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

/// quantize(dequantize(q)) ==> q, where that is its type and nothing is clipped
OpFoldResult QuantizeOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<DequantizeOp>();
  if (!inner || getClip() || inner.getInput().getType() != getType())
    return {};
  return inner.getInput();
}

/// relayout(x) to the layout of x ==> x, relayout(relayout(x)) back ==> x
OpFoldResult RelayoutOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<RelayoutOp>();
  return inner && inner.getInput().getType() == getType()
             ? OpFoldResult(inner.getInput())
             : OpFoldResult();
}
