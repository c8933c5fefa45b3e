#include "codegen/Kernels/KernelInterface.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace mlir::llm {

unsigned texelBytes(TexelFormat format) {
  return format == TexelFormat::Rgba32Uint ||
                 format == TexelFormat::Rgba32Sfloat
             ? 16
             : 4;
}

unsigned KernelInterface::indexOf(llvm::StringRef role) const {
  auto it = llvm::find_if(bindings, [&](const KernelBinding &known) {
    return known.role == role;
  });
  return unsigned(it - bindings.begin());
}

uint64_t KernelBinding::mostBytes(const TargetLimits &limits) const {
  if (texel != TexelFormat::None)
    return uint64_t(limits.texelElements) * texelBytes(texel);
  return uniform ? limits.uniformRange : limits.storageRange;
}

std::string KernelInterface::nameFor(const std::string &prefix,
                                     const std::string &key) {
  uint64_t hash = llvm::xxh3_64bits(key);
  return prefix + "_" +
         llvm::utohexstr(hash >> 32, /*LowerCase=*/true, /*Width=*/8);
}

} // namespace mlir::llm
