// join_heads: every head of a token from two parts, one after the other; a part
// may be one for all heads.
//
// Spec: {heads = H, first = E of the first part, second = E of the second,
// first_shared?, second_shared? = the part is one for all heads}. Bindings: a
// f32 [T][H·first] or [T][first]; b f32 [T][H·second] or [T][second]; y f32
// [T][H·(first + second)].
#ifndef SPRIG_CODEGEN_KERNELS_JOINHEADS_H
#define SPRIG_CODEGEN_KERNELS_JOINHEADS_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct JoinHeadsSpec {
  static constexpr llvm::StringLiteral kFamily = "join_heads";
  int64_t heads = 0, first = 0, second = 0;
  bool firstShared = false, secondShared = false;

  static FailureOr<JoinHeadsSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  /// Numbers of a token in a part.
  int64_t firstRow() const { return (firstShared ? 1 : heads) * first; }
  int64_t secondRow() const { return (secondShared ? 1 : heads) * second; }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_JOINHEADS_H
