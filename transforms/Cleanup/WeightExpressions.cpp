#include "transforms/Cleanup/WeightExpressions.h"
#include "dialects/LLM/LLM.h"

using namespace mlir;
using namespace mlir::llm;

namespace {

/// slice(x, 0 to all) ==> x; slice(slice(x)) ==> slice(x), along one axis
struct ShortenSlice final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp slice, PatternRewriter &rewriter) const override {
    if (slice.getInput().getType() == slice.getType()) {
      rewriter.replaceOp(slice, slice.getInput());
      return success();
    }
    auto inner = slice.getInput().getDefiningOp<SliceOp>();
    if (!inner || inner.getAxis() != slice.getAxis())
      return rewriter.notifyMatchFailure(slice, "input is not a slice along the same axis");
    rewriter.replaceOpWithNewOp<SliceOp>(slice, inner.getInput(), inner.getBegin() + slice.getBegin(),
                                         inner.getBegin() + slice.getEnd(), slice.getAxis());
    return success();
  }
};

/// slice(concat(a, b)) ==> slice(b), where the slice lies in b
struct SliceOfConcat final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp slice, PatternRewriter &rewriter) const override {
    auto concat = slice.getInput().getDefiningOp<ConcatOp>();
    if (!concat || concat.getAxis() != slice.getAxis())
      return rewriter.notifyMatchFailure(slice, "input is not a concatenation along the same axis");
    const int64_t begin = int64_t(slice.getBegin()), end = int64_t(slice.getEnd());
    int64_t at = 0;
    for (Value input : concat.getInputs()) {
      const int64_t size = cast<ShapedType>(input.getType()).getDimSize(unsigned(slice.getAxis()));
      if (begin >= at && end <= at + size) {
        rewriter.replaceOpWithNewOp<SliceOp>(slice, input, begin - at, end - at, slice.getAxis());
        return success();
      }
      at += size;
    }
    return rewriter.notifyMatchFailure(slice, "the slice spans several inputs");
  }
};

/// concat(x) ==> x; concat(a, concat(b, c)) ==> concat(a, b, c), along one axis
struct FlattenConcat final : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp concat, PatternRewriter &rewriter) const override {
    if (concat.getInputs().size() == 1) {
      rewriter.replaceOp(concat, concat.getInputs().front());
      return success();
    }
    SmallVector<Value> inputs;
    for (Value input : concat.getInputs()) {
      auto inner = input.getDefiningOp<ConcatOp>();
      if (inner && inner.getAxis() == concat.getAxis())
        llvm::append_range(inputs, inner.getInputs());
      else
        inputs.push_back(input);
    }
    if (inputs.size() == concat.getInputs().size())
      return rewriter.notifyMatchFailure(concat, "no input is a concatenation along the same axis");
    rewriter.replaceOpWithNewOp<ConcatOp>(concat, inputs, concat.getAxis());
    return success();
  }
};

/// reshape(x) to the type of x ==> x; reshape(reshape(x)) ==> reshape(x)
struct ShortenReshape final : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp reshape, PatternRewriter &rewriter) const override {
    if (reshape.getInput().getType() == reshape.getType()) {
      rewriter.replaceOp(reshape, reshape.getInput());
      return success();
    }
    auto inner = reshape.getInput().getDefiningOp<ReshapeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(reshape, "input is not reshaped");
    rewriter.replaceOpWithNewOp<ReshapeOp>(reshape, reshape.getType(), inner.getInput());
    return success();
  }
};

/// transpose(x) in the order of x ==> x; transpose(transpose(x)) ==> transpose(x)
struct ShortenTranspose final : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp transpose, PatternRewriter &rewriter) const override {
    const ArrayRef<int64_t> order = transpose.getOrder();
    if (llvm::equal(order, llvm::seq<int64_t>(0, int64_t(order.size())))) {
      rewriter.replaceOp(transpose, transpose.getInput());
      return success();
    }
    auto inner = transpose.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(transpose, "input is not transposed");
    SmallVector<int64_t> both;
    for (int64_t dimension : order)
      both.push_back(inner.getOrder()[size_t(dimension)]);
    rewriter.replaceOpWithNewOp<TransposeOp>(transpose, inner.getInput(), both);
    return success();
  }
};

} // namespace

void mlir::llm::populateWeightExpressionPatterns(RewritePatternSet &patterns) {
  patterns.add<ShortenSlice, SliceOfConcat, FlattenConcat, ShortenReshape, ShortenTranspose>(patterns.getContext());
}
