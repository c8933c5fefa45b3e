// What the pruning passes share: new numbers in the format that a weight had, chosen rows, and least squares.
#ifndef SPRIG_TRANSFORMS_PRUNE_REWRITE_H
#define SPRIG_TRANSFORMS_PRUNE_REWRITE_H

#include "lib/Weights/WeightSpill.h"
#include "mlir/IR/BuiltinOps.h"
#include "transforms/Quantize/Products.h"

namespace mlir::llm {

/// Writes a weight of other numbers (and perhaps of another width) in the format of `like`, where its blocks divide the
/// new rows and it can be encoded, else as f16. A format of groups stays one of as many bits a number and numbers a group,
/// with scales in f16 and, where it is not symmetric, integer zero points; of N:M where the new numbers fit that. Scales
/// are those of least squared error. Gives it back at the builder's place.
FailureOr<Value> writeLike(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name, RankedTensorType like,
                           const Matrix &matrix);

/// Integers as a weight: the index of a gather.
FailureOr<Value> writeIndex(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                            ArrayRef<int64_t> index);

/// Multiples of this many rows or columns keep the blocks of `type` whole; 1 for floats.
int64_t blockOf(RankedTensorType type);

/// The `keep` indices of the largest scores, ascending; of equal ones the first.
SmallVector<int64_t> largest(ArrayRef<double> scores, int64_t keep);

/// W · H[:, kept] · (H[kept, kept] + λI)⁻¹: what the kept columns have to be so that the product of the kept inputs is as
/// near to that of all as it can be (H = Σ xxᵀ). λ is `damping` times the mean diagonal.
FailureOr<Matrix> refitColumns(const Matrix &weight, ArrayRef<float> gram, ArrayRef<int64_t> kept, double damping);

/// How much of Σ|Wx|² (H = Σ xxᵀ) is lost when the kept columns of the input meet `columns` instead of all meeting W.
double lostShare(const Matrix &weight, ArrayRef<float> gram, ArrayRef<int64_t> kept, const Matrix &columns);

/// Chosen columns as they are.
Matrix chooseColumns(const Matrix &weight, ArrayRef<int64_t> kept);

/// Sets a number of the module's `llm.model`, where it has one.
void describeModel(ModuleOp module, StringRef key, int64_t value);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_REWRITE_H
