// Blocks of positions that attention skips.
#ifndef SPRIG_CODEGEN_KERNELS_BLOCKSHAPE_H
#define SPRIG_CODEGEN_KERNELS_BLOCKSHAPE_H

#include <cstdint>

namespace mlir::llm {

/// The numbers of `#llm.blocks`: a token in block i sees block j where
/// i - j < local, or j < first, or stride is not 0 and divides i - j.
struct BlockShape {
  int64_t size = 0; ///< positions of a block; 0: no blocks
  int64_t local = 1, first = 0, stride = 0;

  explicit operator bool() const { return size != 0; }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_BLOCKSHAPE_H
