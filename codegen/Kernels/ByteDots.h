// Products of signed bytes by integer dot products.
#ifndef SPRIG_CODEGEN_KERNELS_BYTEDOTS_H
#define SPRIG_CODEGEN_KERNELS_BYTEDOTS_H

#include "codegen/Kernels/KernelBuilder.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::llm {

/// Whether the target has them; MLIR has them for SPIR-V 1.6 alone.
inline bool hasByteDots(const TargetProfile &profile) {
  return profile.has(Feature::IntegerDotProduct) &&
         profile.spirv >= Version{1, 6};
}

/// Four signed bytes of each word, multiplied and added.
inline Value byteDot(KernelBuilder &b, Value left, Value right) {
  return spirv::SDotOp::create(
      b.ops(), b.loc(), b.i32(), left, right,
      spirv::PackedVectorFormatAttr::get(
          b.ops().getContext(),
          spirv::PackedVectorFormat::PackedVectorFormat4x8Bit));
}

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_BYTEDOTS_H
