// top: the likeliest tokens of rows of logits, and the natural logarithms of
// their probabilities at temperature 1 (runtime/Format/Guesses.h): what a draft
// says, for trees to be grown of it.
//
// Spec: {vocabulary = V, tokens? = ids below it count (default V), tree? = 1:
// the rows are the nodes of a tree}. Bindings: logits f32 [V]; control;
// guesses, the rows. One workgroup a row: row Steps - 1 without `tree`, else
// that of the node.
//
// The vocabulary is dealt into classes by the remainder of its ids; the best of
// each class is known, and only the class whose best was taken is read again.
#ifndef SPRIG_CODEGEN_KERNELS_TOP_H
#define SPRIG_CODEGEN_KERNELS_TOP_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct TopSpec {
  static constexpr llvm::StringLiteral kFamily = "top";
  int64_t vocabulary = 0, tokens = 0, tree = 0;

  static FailureOr<TopSpec> fromAttr(DictionaryAttr spec, EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
  /// Tokens that count.
  int64_t drawable() const { return tokens ? tokens : vocabulary; }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_TOP_H
