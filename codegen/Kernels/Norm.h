// norm: RMS norm (Zhang and Sennrich, arXiv 1910.07467) or layer norm (Ba et
// al., arXiv 1607.06450) of each token's activations, written out: for models
// and targets where the norm is not folded into the product that follows.
//
// Spec: {width = D, kind = "rms" | "layer", eps, count? = numbers that count
// (default D), scale? = γ is bound, shift? = β is bound, last? = only the row
// of the step's last valid token, written to row 0}. Bindings: x f32 [T][D]; γ
// f32 [D]; β f32 [D]; control (with `last`); y f32 [T][D].
#ifndef SPRIG_CODEGEN_KERNELS_NORM_H
#define SPRIG_CODEGEN_KERNELS_NORM_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct NormSpec {
  static constexpr llvm::StringLiteral kFamily = "norm";
  int64_t width = 0, count = 0;
  std::string kind = "rms";
  double eps = 1e-5;
  bool scale = false, shift = false, last = false;

  static FailureOr<NormSpec> fromAttr(DictionaryAttr spec, EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_NORM_H
