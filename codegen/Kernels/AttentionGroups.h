// attention_groups: how many workgroups attention and its combination need for
// the live context, for indirect dispatches. One workgroup, once a step.
//
// Spec: {heads = H, heads_a_group = query heads that a workgroup of attention
// serves, capacity = S, window?, sinks?, split, tokens?: as in Attention.h}.
// Bindings: control; "attention" and "combine": three 32-bit counts each.
// Nothing is combined where one split holds all that the step sees.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONGROUPS_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONGROUPS_H

#include "codegen/Kernels/Attention.h"

namespace mlir::llm {

struct AttentionGroupsSpec {
  static constexpr llvm::StringLiteral kFamily = "attention_groups";
  int64_t heads = 0, headsAGroup = 1, capacity = 0;
  int64_t window = 0, sinks = 0, split = 0, tokens = 1;

  AttentionGroupsSpec() = default;
  /// The counts for `attention`.
  explicit AttentionGroupsSpec(const AttentionSpec &attention)
      : heads(attention.heads), headsAGroup(attention.groupHeads()),
        capacity(attention.capacity), window(attention.window),
        sinks(attention.sinks), split(attention.split),
        tokens(attention.tokens) {}

  static FailureOr<AttentionGroupsSpec> fromAttr(DictionaryAttr spec,
                                                 EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  static constexpr uint64_t kBytes = 12; ///< of each result
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONGROUPS_H
