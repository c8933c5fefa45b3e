// cosine_gate: heads of values, each times the cosine between the token's query
// and key of that head (llm.cosine_gate).
//
// Spec: {heads = H, head_size = E, eps = least length that is divided by}.
// Bindings: q, k, v, y f32 [T][H·E]. A subgroup, or where lanes cannot exchange
// values a workgroup, makes one head; the order of the sums depends on its lanes
// alone.
#ifndef SPRIG_CODEGEN_KERNELS_COSINEGATE_H
#define SPRIG_CODEGEN_KERNELS_COSINEGATE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct CosineGateSpec {
  static constexpr llvm::StringLiteral kFamily = "cosine_gate";
  int64_t heads = 0, headSize = 0;
  double eps = 0;

  static FailureOr<CosineGateSpec> fromAttr(DictionaryAttr spec,
                                            EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_COSINEGATE_H
