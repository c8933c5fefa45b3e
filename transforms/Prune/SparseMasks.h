// Which single numbers of a weight stay: N of each M neighbours, or a share of all.
#ifndef SPRIG_TRANSFORMS_PRUNE_SPARSEMASKS_H
#define SPRIG_TRANSFORMS_PRUNE_SPARSEMASKS_H

#include "transforms/Quantize/Gptq.h"

namespace mlir::llm {

struct SparseRule {
  Sparsity pattern;  ///< N:M, or 0:0
  double ratio = 0;  ///< without a pattern: of the numbers, that go
};

/// Of each row what is largest times the factor of its column (none: by itself). Without a pattern the share goes from
/// each row.
KeptNumbers keepLargest(MLIRContext *context, const SparseRule &rule, const Matrix &weight, ArrayRef<float> factors);

/// SparseGPT (Frantar and Alistarh, arXiv 2301.00774): what goes is chosen where the sweep over columns arrives, by what
/// it costs when everything behind makes up for it, `w² / [H⁻¹]_kk`. Without a pattern the share goes from each row of
/// each block of columns. Where there are `codes`, what stays is rounded on the way (their kept numbers are set, too);
/// else `weight` gets new numbers. Columns of `inputs` are in their own order.
void sparseGpt(MLIRContext *context, const SparseRule &rule, Matrix &weight, const InverseFactor &inputs,
               const WeightScheme &scheme, QuantizedRows *codes);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_SPARSEMASKS_H
