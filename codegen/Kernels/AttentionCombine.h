// attention_combine: folds the results of attention's splits, in ascending
// order, into those of the whole context. Tokens that see one split only have
// their result from the attention kernel already.
//
// Spec: {heads = H, head_size = E, value_size?, capacity = S, window?, sinks?, split, parts,
// tree?: as in Attention.h}. Bindings: control; partial f32 [T][H][parts][E];
// stats f32 [T][H][parts][2]; y f32 [T][H·EV]; with `tree` its table
// (TreeTable.h).
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONCOMBINE_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONCOMBINE_H

#include "codegen/Kernels/Attention.h"

namespace mlir::llm {

struct AttentionCombineSpec {
  static constexpr llvm::StringLiteral kFamily = "attention_combine";
  int64_t heads = 0, headSize = 0, capacity = 0;
  int64_t window = 0, sinks = 0, split = 0, parts = 0, tree = 0;
  int64_t valueSize = 0;

  AttentionCombineSpec() = default;
  /// The combination that follows `attention`.
  explicit AttentionCombineSpec(const AttentionSpec &attention)
      : heads(attention.heads), headSize(attention.headSize),
        capacity(attention.capacity), window(attention.window),
        sinks(attention.sinks), split(attention.split), parts(attention.parts),
        tree(attention.tree), valueSize(attention.valueSize) {}

  static FailureOr<AttentionCombineSpec> fromAttr(DictionaryAttr spec,
                                                  EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONCOMBINE_H
