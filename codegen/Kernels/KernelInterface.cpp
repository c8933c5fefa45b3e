#include "codegen/Kernels/KernelInterface.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace mlir::llm {

std::string KernelInterface::nameFor(const std::string &prefix,
                                     const std::string &key) {
  uint64_t hash = llvm::xxh3_64bits(key);
  return prefix + "_" +
         llvm::utohexstr(hash >> 32, /*LowerCase=*/true, /*Width=*/8);
}

} // namespace mlir::llm
