// Verifiers and folds of what a program holds. Each check carries the number of
// its constraint in PlanOps.td.
#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::plan;

/// The range [offset, offset + bytes) is not empty, inside `size`, and starts
/// at a multiple of 256.
static LogicalResult verifyRange(Operation *op, StringRef what, int64_t offset,
                                 int64_t bytes, int64_t size) {
  if (bytes < 1 || offset < 0 || offset > size || bytes > size - offset)
    return op->emitOpError("expects a range inside ")
           << what << " of " << size << " bytes, but got " << bytes
           << " bytes at " << offset;
  if (offset % kAlignment != 0)
    return op->emitOpError("expects an offset that is a multiple of ")
           << kAlignment << ", but got " << offset;
  return success();
}

LogicalResult ViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // A program is no symbol table: the nearest is the target.
  auto buffer =
      symbols.lookupNearestSymbolFrom<BufferOp>(*this, getBufferAttr());
  if (!buffer) // C1
    return emitOpError("expects a buffer of the target, but got ")
           << getBufferAttr();
  return verifyRange(*this, ("@" + getBuffer()).str(), getOffset(), getBytes(),
                     buffer.getBytes()); // C2, C3
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // Tensors are symbols of the module, one symbol table further out than the
  // nearest.
  auto module = (*this)->getParentOfType<ModuleOp>();
  auto tensor = module
                    ? symbols.lookupSymbolIn<TensorOp>(module, getTensorAttr())
                    : TensorOp();
  if (!tensor) // C1
    return emitOpError("expects a tensor of the module, but got ")
           << getTensorAttr();
  return verifyRange(*this, ("@" + getTensor()).str(), getOffset(), getBytes(),
                     tensor.getBytes()); // C2, C3
}

LogicalResult ScratchOp::verify() {
  if (static_cast<int64_t>(getBytes()) < 1) // C1
    return emitOpError("expects at least 1 byte, but got ")
           << static_cast<int64_t>(getBytes());
  return success();
}

LogicalResult SliceOp::verify() {
  return verifyRange(*this, "its source", getOffset(), getBytes(),
                     getViewBytes(getSource())); // C1, C2
}

namespace {
/// slice(slice(x, a), b) ==> slice(x, a + b), and the same into views and
/// weights
struct FoldSlice final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const override {
    Operation *source = slice.getSource().getDefiningOp();
    int64_t bytes = slice.getBytes(), offset = slice.getOffset();
    if (auto inner = dyn_cast<SliceOp>(source))
      rewriter.replaceOpWithNewOp<SliceOp>(slice, inner.getSource(),
                                           inner.getOffset() + offset, bytes);
    else if (auto view = dyn_cast<ViewOp>(source))
      rewriter.replaceOpWithNewOp<ViewOp>(
          slice, view.getBufferAttr(),
          rewriter.getI64IntegerAttr(view.getOffset() + offset),
          slice.getBytesAttr());
    else if (auto weight = dyn_cast<WeightOp>(source))
      rewriter.replaceOpWithNewOp<WeightOp>(
          slice, weight.getTensorAttr(),
          rewriter.getI64IntegerAttr(weight.getOffset() + offset),
          slice.getBytesAttr());
    else
      return rewriter.notifyMatchFailure(slice, "source has no place yet");
    return success();
  }
};
} // namespace

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<FoldSlice>(context);
}

void DispatchOp::build(OpBuilder &builder, OperationState &state,
                       StringRef kernel, ValueRange bindings,
                       ArrayRef<Access> access, ArrayRef<int32_t> groups,
                       StringRef label, int64_t macs, int64_t touched) {
  SmallVector<int32_t> bits(llvm::map_range(
      access, [](Access a) { return static_cast<int32_t>(a); }));
  build(builder, state, FlatSymbolRefAttr::get(builder.getContext(), kernel),
        bindings, /*indirect=*/Value(), builder.getDenseI32ArrayAttr(bits),
        builder.getDenseI32ArrayAttr(groups), /*base=*/DenseI32ArrayAttr(),
        /*push=*/DenseI32ArrayAttr(), builder.getStringAttr(label),
        builder.getI64IntegerAttr(macs), builder.getI64IntegerAttr(touched),
        builder.getI64IntegerAttr(0));
}

LogicalResult DispatchOp::verify() {
  if (getAccess().size() != getBindings().size()) // C2
    return emitOpError("expects one access for each binding, but got ")
           << getAccess().size() << " for " << getBindings().size();
  if (getGroups().size() != 3 ||
      llvm::any_of(getGroups(), [](int32_t n) { return n < 1; })) // C3
    return emitOpError("expects three group counts of at least 1, but got ")
           << getGroupsAttr();
  if (getIndirect() && getViewBytes(getIndirect()) < 12) // C4
    return emitOpError(
               "expects an indirect count of at least 12 bytes, but got ")
           << getViewBytes(getIndirect());
  for (unsigned i = 0; i != getBindings().size(); ++i)
    if (writes(i) && getPlace(getBindings()[i]).weight) // C5
      return emitOpError("expects weights to be read only, but binding ")
             << i << " writes one";
  if (std::optional<ArrayRef<int32_t>> base = getBase()) {
    if (base->size() != 3 ||
        llvm::any_of(*base, [](int32_t n) { return n < 0; })) // C6
      return emitOpError("expects a base of three numbers of at least 0, but "
                         "got ")
             << getBaseAttr();
    if (getIndirect()) // C6
      return emitOpError("expects either a base or an indirect count, but got "
                         "both");
  }
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // C1
    return emitOpError("expects a kernel of the target, but got ")
           << getKernelAttr();
  if (auto access = kernel.getAccess(); access && *access != getAccess()) // C2
    return emitOpError("expects the bindings of ")
           << getKernelAttr() << " " << kernel.getAccessAttr() << ", but got "
           << getAccessAttr();
  return success();
}
