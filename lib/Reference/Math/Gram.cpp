#include "lib/Reference/Math/Gram.h"

#include "lib/Reference/Math/Products.h"
#include "lib/Reference/Math/Workers.h"

#include <algorithm>
#include <vector>

namespace mlir::llm::reference {

void addGram(Workers &workers, const float *x, size_t T, size_t K, float *gram) {
  const ProductKernels<float> &kernels = productKernels<float>();
  constexpr size_t kBlock = 128;
  const size_t blocks = (K + kBlock - 1) / kBlock;
  // Columns become rows, so that both factors are read along their length.
  std::vector<float> columns(K * T);
  workers.run(blocks, [&](size_t block) {
    for (size_t t = 0; t < T; ++t)
      for (size_t k = block * kBlock; k < std::min(K, (block + 1) * kBlock); ++k)
        columns[k * T + t] = x[t * K + k];
  });
  workers.run(blocks, [&](size_t i) {
    const size_t block = blocks - 1 - i; // the longest first
    const size_t first = block * kBlock, count = std::min(K, first + kBlock) - first, width = first + count;
    std::vector<float> product(count * width);
    kernels.timesTransposed(columns.data() + first * T, ptrdiff_t(T), columns.data(), ptrdiff_t(T), product.data(),
                            ptrdiff_t(width), ptrdiff_t(count), ptrdiff_t(width), ptrdiff_t(T));
    for (size_t row = 0; row < count; ++row)
      for (size_t column = 0; column < width; ++column)
        gram[(first + row) * K + column] += product[row * width + column];
  });
}

void mirrorGram(size_t K, float *gram) {
  for (size_t row = 0; row < K; ++row)
    for (size_t column = 0; column < row; ++column)
      gram[column * K + row] = gram[row * K + column];
}

} // namespace mlir::llm::reference
