// rms_factor: y[T] = 1 / sqrt(mean(x[T][0 … count))² + eps): the per-token
// number that RMS norm multiplies by. The linear family takes it with γ in the
// load of x, so the normalised activations are never written.
//
// Spec: {width = K, count? = numbers that count (default K), eps}. Bindings: x
// f32 [T][K], y f32 [T]. One workgroup a token; additions in an order that
// depends on K and the schedule alone.
#ifndef SPRIG_CODEGEN_KERNELS_RMSFACTOR_H
#define SPRIG_CODEGEN_KERNELS_RMSFACTOR_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct RmsFactorSpec {
  static constexpr llvm::StringLiteral kFamily = "rms_factor";
  int64_t width = 0;
  int64_t count =
      0; ///< the logical width after width pruning, the divisor of the mean
  double eps = 1e-5;

  static FailureOr<RmsFactorSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_RMSFACTOR_H
