// sample: one row of logits to one token, exactly as docs/sampling.md defines
// it, and the step block advanced so that the next step can be submitted
// already.
//
// Spec: {vocabulary = V, tokens? = ids below it may be drawn (default V: rows
// that only pad the vocabulary are no tokens), capacity = S, tree? = width of a
// step whose rows are the nodes of a tree, rounds? = 1: with guesses that may
// have been drawn}. Bindings: logits f32 [V] (the
// repeat penalty is applied in place); control; history. One workgroup.
//
// With `tree` logits are [T][V], and a workgroup for each node draws what plain
// decoding of the node's path would draw; the table of the tree (TreeTable.h)
// and `drawn`, a token for each node, are bound too, and the step block stays
// as it is. With `rounds` the rows of runtime/Format/Guesses.h are bound behind
// them, and control.Rounds says whether the multi-round rule (SampleRounds.h)
// takes the place of the draw where the temperature is above 0.
//
// Top-k and top-p need no sort: they are thresholds on z, found digit by digit
// (four bits a pass) on the numbers' bits in an order-preserving form.
#ifndef SPRIG_CODEGEN_KERNELS_SAMPLE_H
#define SPRIG_CODEGEN_KERNELS_SAMPLE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct SampleSpec {
  static constexpr llvm::StringLiteral kFamily = "sample";
  int64_t vocabulary = 0, tokens = 0, capacity = 0, tree = 0, rounds = 0;

  static FailureOr<SampleSpec> fromAttr(DictionaryAttr spec,
                                        EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
  /// Narrow subgroups (CPU drivers) are a workgroup by themselves: nothing to
  /// wait for, and few passes with many trials pay. Elsewhere the trials of a
  /// pass must fit shared memory.
  static bool isNarrow(const TargetProfile &profile) {
    return profile.canShuffle() && profile.subgroupSize <= 8;
  }
  /// Tokens that may be drawn.
  int64_t drawable() const { return tokens ? tokens : vocabulary; }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SAMPLE_H
