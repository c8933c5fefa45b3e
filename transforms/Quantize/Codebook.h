// Learned codebooks (SqueezeLLM, Kim et al., arXiv 2306.07629): the few numbers that a row of a weight can hold are the
// means of clusters, and need not lie evenly.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_CODEBOOK_H
#define SPRIG_TRANSFORMS_QUANTIZE_CODEBOOK_H

#include "transforms/Quantize/Products.h"

namespace mlir::llm {

/// A weight `NxK` as indices into a book of each row.
struct CodebookRows {
  int64_t N = 0, K = 0;
  unsigned bits = 4;
  std::vector<int8_t> codes; ///< [N, K]
  std::vector<float> books;  ///< [N, 2^bits], numbers of f16, ascending
  int64_t entries() const { return int64_t(1) << bits; }
  float value(int64_t n, int64_t k) const { return books[size_t(n * entries() + codes[size_t(n * K + k)])]; }
};

/// k-means of each row, where column k counts `importance[k]` times (all alike where that is empty).
CodebookRows learnCodebooks(MLIRContext *context, unsigned bits, const Matrix &weight, ArrayRef<double> importance);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_CODEBOOK_H
