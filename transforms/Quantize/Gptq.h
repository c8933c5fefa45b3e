// GPTQ (Frantar et al., arXiv 2210.17323): columns are rounded one after another, and what is lost in one is made up
// for in those that follow, as the second moments of the inputs allow.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_GPTQ_H
#define SPRIG_TRANSFORMS_QUANTIZE_GPTQ_H

#include "transforms/Quantize/Products.h"
#include "transforms/Quantize/Scheme.h"

namespace mlir::llm {

/// What GPTQ and SparseGPT need of the inputs of a product: the upper Cholesky factor of the inverse of their damped
/// second moments, with columns in the order in which they are worked on.
struct InverseFactor {
  int64_t K = 0;
  std::vector<int64_t> order; ///< order[i]: the column that is worked on as number i
  std::vector<float> upper;   ///< [K, K] row-major, in that order
  std::vector<float> diagonal; ///< of the second moments, by column
  std::vector<bool> dead;      ///< columns that never meet anything but zero
};

/// Of Σ xxᵀ, damped by `damping` times its mean diagonal. With `byImportance` the columns of the largest second moments
/// come first, else from left to right. Fails where the sum is no second moment (NaN, say).
FailureOr<InverseFactor> invertMoments(ArrayRef<float> gram, int64_t K, double damping, bool byImportance);

/// The same with more and more damping, where a text says too little about a product; an error on it where that does not
/// suffice.
FailureOr<InverseFactor> invertWithDamping(Operation *product, ArrayRef<float> gram, int64_t K, double damping,
                                           bool byImportance);

/// Rounds a weight. Grids are the best of a group as it is when its first column is reached, or of the numbers as they
/// were where columns are not worked on from left to right. Numbers that are not kept become zero.
QuantizedRows gptq(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight, const InverseFactor &inputs,
                   const KeptNumbers &kept = {});

/// Σ (Wx − Ŵx)² over the inputs behind `gram`, of some rows of W: what `step` counts off.
double outputError(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight, const QuantizedRows &rounded,
                   ArrayRef<float> gram, int64_t step = 1);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_GPTQ_H
