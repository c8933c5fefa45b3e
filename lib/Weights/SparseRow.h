// Rows of packed codes, as checkpoints store them: one after another, low bits first; of `N:M` only those that are kept,
// and patterns beside them.
#ifndef SPRIG_LIB_WEIGHTS_SPARSEROW_H
#define SPRIG_LIB_WEIGHTS_SPARSEROW_H

#include "dialects/LLM/LLM.h"
#include <vector>

namespace mlir::llm::weights {

/// Bits [from, from + count) of bytes, count <= 32.
uint32_t bitsOfBytes(const std::byte *bytes, size_t from, unsigned count);

/// Bytes of a row of K numbers.
size_t packedBytes(size_t K, Sparsity sparsity, unsigned bits);
size_t patternBytes(size_t K, Sparsity sparsity);

/// Puts the codes of a sparse row to the columns that they belong to (`codes` has K), and gives back a bit for each
/// column that is kept.
std::vector<uint32_t> readSparseRow(Sparsity sparsity, unsigned bits, const std::byte *packed,
                                    const std::byte *patterns, MutableArrayRef<uint32_t> codes);

} // namespace mlir::llm::weights

#endif // SPRIG_LIB_WEIGHTS_SPARSEROW_H
