// read: does nothing but fetch bytes, with loads as wide as the target's linear
// kernels use. It is the yardstick that benchmarks hold products against.
//
// Spec: {bytes: a multiple of 16, texels?: 1 reads through texel views}.
// Bindings: "x" of that many bytes; "y", a word for each invocation: the
// exclusive or of what it read. A workgroup of 8 invocations reads 64 KiB,
// neighbours side by side.
#ifndef SPRIG_CODEGEN_KERNELS_READ_H
#define SPRIG_CODEGEN_KERNELS_READ_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct ReadSpec {
  static constexpr llvm::StringLiteral kFamily = "read";
  int64_t bytes = 0, texels = 0;

  static FailureOr<ReadSpec> fromAttr(DictionaryAttr spec, EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  int64_t groups() const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_READ_H
