// Checkpoints in FP8, made from checkpoints in other types.
#ifndef SPRIG_TEST_LIB_IMPORT_FP8CHECKPOINT_H
#define SPRIG_TEST_LIB_IMPORT_FP8CHECKPOINT_H

#include "lib/Quant/Format.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace mlir::llm::testing {

/// How a checkpoint stores its scales.
struct Fp8Scheme {
  const char *name;
  int64_t rows, columns; ///< that share a scale; 0: all
  std::vector<int64_t> (*shape)(int64_t rows, int64_t columns);
  const char *config;
  sprig::quant::Format floats = sprig::quant::Format::F8E4M3;
};

/// A scale a block.
inline std::vector<int64_t> fp8Blocks(int64_t rows, int64_t columns) { return {rows, columns}; }

/// Writes the model in the folder `from`, with made-up matrices in FP8 to the folder `coded`, and with the numbers that
/// these stand for to `plain`. Scales may be left out.
llvm::Error writeFp8(llvm::StringRef from, const Fp8Scheme &scheme, llvm::StringRef coded, llvm::StringRef plain,
                     bool scales = true);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_FP8CHECKPOINT_H
