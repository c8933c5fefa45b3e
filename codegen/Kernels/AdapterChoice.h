// adapter_choice: ids[T] and gain[T] of the adapter that the session uses (control.Adapter: 0 for none, else its number
// from 1): the number less one and its gain, or 0 and 0. A number that is too large counts as none.
//
// Spec: {adapters}. Bindings: control, gains f32 [adapters], ids i32 [T], gain f32 [T]. One workgroup of one lane a token.
#ifndef SPRIG_CODEGEN_KERNELS_ADAPTERCHOICE_H
#define SPRIG_CODEGEN_KERNELS_ADAPTERCHOICE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct AdapterChoiceSpec {
  static constexpr llvm::StringLiteral kFamily = "adapter_choice";
  int64_t adapters = 0;

  static FailureOr<AdapterChoiceSpec> fromAttr(DictionaryAttr spec, EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile, EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ADAPTERCHOICE_H
