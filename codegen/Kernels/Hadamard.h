// hadamard: the Walsh-Hadamard transform of blocks of activations, behind
// rotations (llm-rotate) of what products read.
//
// Spec: {width = numbers of a token, block = a power of two that divides it,
// signs?, inverse?}. Bindings: x f32 [T][width]; signs f32 [width], 1 or -1;
// y f32 [T][width].
//
//   y = H (signs . x) / sqrt(block), the inverse y = signs . (H x) / sqrt(block)
//
// A lane holds neighbouring numbers; lanes exchange by shuffles, or through
// shared memory.
#ifndef SPRIG_CODEGEN_KERNELS_HADAMARD_H
#define SPRIG_CODEGEN_KERNELS_HADAMARD_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct HadamardSpec {
  static constexpr llvm::StringLiteral kFamily = "hadamard";
  int64_t width = 0, block = 0;
  bool signs = false, inverse = false;

  static FailureOr<HadamardSpec> fromAttr(DictionaryAttr spec,
                                          EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_HADAMARD_H
