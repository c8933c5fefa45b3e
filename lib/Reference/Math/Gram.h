// Sums over rows that calibration gathers.
#ifndef SPRIG_LIB_REFERENCE_MATH_GRAM_H
#define SPRIG_LIB_REFERENCE_MATH_GRAM_H

#include <cstddef>

namespace mlir::llm::reference {

class Workers;

/// gram[K, K] += xᵀ·x of x[T, K], the lower half only, in blocks: what lies above the diagonal is undefined until
/// `mirrorGram`.
void addGram(Workers &workers, const float *x, size_t T, size_t K, float *gram);

/// Copies the lower half to the upper one.
void mirrorGram(size_t K, float *gram);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_GRAM_H
