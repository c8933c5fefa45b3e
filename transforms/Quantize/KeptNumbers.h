// Weights whose numbers are zero in a pattern of N:M, which are stored without those zeros.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_KEPTNUMBERS_H
#define SPRIG_TRANSFORMS_QUANTIZE_KEPTNUMBERS_H

#include "transforms/Quantize/Products.h"
#include "transforms/Quantize/Scheme.h"

namespace mlir::llm {

/// 2:4, else 4:8, where at most so many numbers of each piece of each row are not zero (and rows are whole units of a
/// sparse format); 0:0 for all others.
Sparsity sparsityOf(const Matrix &weight);

/// Exactly N of each M: what is not zero, filled up from the front.
KeptNumbers keptNumbers(const Matrix &weight, Sparsity sparsity);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_KEPTNUMBERS_H
