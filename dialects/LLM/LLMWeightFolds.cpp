// Folders and canonicalisations of weight expressions. They hold for
// activations too.
#include "dialects/LLM/InlineValues.h"
#include "dialects/LLM/Verify.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::llm;

//===- slice ------------------------------------------------------------===//

/// slice(x, all of it) ==> x
OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool known =
      !ShapedType::isDynamic(getInput().getType().getDimSize(getAxis()));
  return known && getInput().getType() == getType() ? OpFoldResult(getInput())
                                                    : OpFoldResult();
}

namespace {
/// slice(slice(x, a to b), c to d) ==> slice(x, a+c to a+d), along one axis
struct SliceOfSlice final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<SliceOp>();
    if (!inner || inner.getAxis() != op.getAxis())
      return rewriter.notifyMatchFailure(
          op, "input is no slice along the same axis");
    rewriter.replaceOpWithNewOp<SliceOp>(
        op, inner.getInput(), inner.getBegin() + op.getBegin(),
        inner.getBegin() + op.getEnd(), op.getAxis());
    return success();
  }
};

/// slice(concat(…, x, …), within x) ==> slice(x), along one axis
struct SliceOfConcat final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getInput().getDefiningOp<ConcatOp>();
    if (!concat || concat.getAxis() != op.getAxis())
      return rewriter.notifyMatchFailure(
          op, "input is no concatenation along the same axis");
    int64_t start = 0, begin = op.getBegin(), end = op.getEnd();
    for (Value input : concat.getInputs()) {
      int64_t size =
          cast<RankedTensorType>(input.getType()).getDimSize(op.getAxis());
      if (ShapedType::isDynamic(size))
        return rewriter.notifyMatchFailure(op, "an input has a dynamic size");
      if (begin >= start && end <= start + size) {
        rewriter.replaceOpWithNewOp<SliceOp>(op, input, begin - start,
                                             end - start, op.getAxis());
        return success();
      }
      start += size;
    }
    return rewriter.notifyMatchFailure(op, "the slice spans several inputs");
  }
};
} // namespace

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<SliceOfSlice, SliceOfConcat>(context);
}

//===- concat -----------------------------------------------------------===//

/// concat(x) ==> x
OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? OpFoldResult(getInputs().front())
                                 : OpFoldResult();
}

namespace {
/// concat(a, concat(b, c), d) ==> concat(a, b, c, d), along one axis
struct FlattenConcat final : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> flat;
    for (Value input : op.getInputs()) {
      auto inner = input.getDefiningOp<ConcatOp>();
      if (inner && inner.getAxis() == op.getAxis())
        llvm::append_range(flat, inner.getInputs());
      else
        flat.push_back(input);
    }
    if (flat.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(
          op, "no input is a concatenation along the same axis");
    rewriter.replaceOpWithNewOp<ConcatOp>(op, flat, op.getAxis());
    return success();
  }
};

/// concat(slice(x, a to b), slice(x, b to c)) ==> slice(x, a to c)
struct JoinSlices final : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> joined;
    for (Value input : op.getInputs()) {
      SliceOp next = input.getDefiningOp<SliceOp>();
      SliceOp last =
          joined.empty() ? SliceOp() : joined.back().getDefiningOp<SliceOp>();
      if (next && last && next.getInput() == last.getInput() &&
          next.getAxis() == op.getAxis() && last.getAxis() == op.getAxis() &&
          next.getBegin() == last.getEnd())
        joined.back() =
            SliceOp::create(rewriter, op.getLoc(), last.getInput(),
                            last.getBegin(), next.getEnd(), op.getAxis());
      else
        joined.push_back(input);
    }
    if (joined.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(
          op, "no two inputs are neighbouring slices of one tensor");
    rewriter.replaceOpWithNewOp<ConcatOp>(op, joined, op.getAxis());
    return success();
  }
};
} // namespace

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<FlattenConcat, JoinSlices>(context);
}

//===- gather, scale_axis, transpose, reshape, relayout -----------------===//

/// gather(x, 0, 1, 2, …) ==> x, where that is all of x
OpFoldResult GatherOp::fold(FoldAdaptor) {
  if (getInput().getType() != getType() || !isInlineIota(getIndex()))
    return {};
  return getInput();
}

/// scale_axis(x, 1) ==> x
OpFoldResult ScaleAxisOp::fold(FoldAdaptor) {
  return isInlineSplat(getFactors(), 1) ? OpFoldResult(getInput())
                                        : OpFoldResult();
}

/// transpose(x, the order it has) ==> x
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  return llvm::is_sorted(getOrder()) ? OpFoldResult(getInput())
                                     : OpFoldResult();
}

/// transpose(transpose(x)) ==> transpose(x)
LogicalResult TransposeOp::canonicalize(TransposeOp op,
                                        PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<TransposeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  SmallVector<int64_t> order = llvm::map_to_vector(
      op.getOrder(), [&](int64_t axis) { return inner.getOrder()[axis]; });
  rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getInput(), order);
  return success();
}

/// reshape(x, the shape it has) ==> x
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput())
                                           : OpFoldResult();
}

/// reshape(reshape(x)) ==> reshape(x)
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<ReshapeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "input is not reshaped");
  rewriter.modifyOpInPlace(
      op, [&] { op.getInputMutable().assign(inner.getInput()); });
  return success();
}

/// relayout(x, the layout it has) ==> x
OpFoldResult RelayoutOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput())
                                           : OpFoldResult();
}

/// relayout(relayout(x)) ==> relayout(x)
LogicalResult RelayoutOp::canonicalize(RelayoutOp op,
                                       PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<RelayoutOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "input keeps its layout");
  rewriter.modifyOpInPlace(
      op, [&] { op.getInputMutable().assign(inner.getInput()); });
  return success();
}

//===- quantize ---------------------------------------------------------===//

/// quantize(dequantize(q)) ==> q, where that is its type and nothing is clipped
OpFoldResult QuantizeOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<DequantizeOp>();
  if (!inner || getClip() || inner.getInput().getType() != getType())
    return {};
  return inner.getInput();
}
