// Rounding floats to what a `!llm.q` type can hold, by the plain rule of `llm.quantize`: scales from the largest
// magnitude or the range of a group, codes to the nearest. The result is the numbers that the codes mean.
#ifndef SPRIG_LIB_REFERENCE_CODEC_H
#define SPRIG_LIB_REFERENCE_CODEC_H

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Math/Workers.h"

namespace mlir::llm::reference {

/// The entries of a codebook that needs no operand (iq4nl, nf4), ascending; empty for other names.
ArrayRef<float> knownCodebook(StringRef name);

/// What a code stands for before it is scaled. `code` is the stored bits; grids have no such number.
double meaningOfCode(QuantCode code, ArrayRef<float> codebook, uint32_t stored);

/// A scale, minimum or zero point as its type stores it: the nearest value, zero for a code that is out of reach of
/// an unsigned type. e8m0 takes the power of two below.
double roundScale(ScaleType type, double value);

/// Rounds `rows` rows of K numbers in place. Fails for grids and learned codebooks.
///
/// Levels of scales: the inner scale of each group comes from its numbers; where it is an integer (two levels), the
/// outer scale is the largest inner one over the largest integer. Codes are then chosen for the scales as stored.
/// Zero is always within the range of a code with a zero point or a subtracted minimum. With N:M sparsity the N
/// largest magnitudes of each M stay.
template <typename F>
LogicalResult roundToCodes(Workers &workers, QuantizedType type, F *numbers, int64_t rows, int64_t K, double clip);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_CODEC_H
