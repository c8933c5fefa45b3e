// elementwise: what is left of the simple operations when nothing took them
// into a prologue or an epilogue.
//
// Spec: {op, width = numbers of a token, kind? of an activation, number? =
// factor or cap, from? }. op and bindings (f32 [T][width], the last written):
//   "add" a, b, y · "scale" x, y · "softcap" x, y (c·tanh(x/c)) ·
//   "activation" x, y · "gated" gate, up, y (kind(gate)·up) ·
//   "last" x, control, y: the row of the step's last valid token, to row 0 ·
//   "scale_columns" x, b, y: number i times b[i mod from] ·
//   "gather" x [T][from], b, y: number i is number b[i] of the token's x ·
//   "accepted" x, control, y: that of the last node that a verify step
//   accepted, of `rows` rows, or row 0 where the last step was none.
// Kinds: "silu", "gelu" (with erf), "gelu_tanh", "relu".
#ifndef SPRIG_CODEGEN_KERNELS_ELEMENTWISE_H
#define SPRIG_CODEGEN_KERNELS_ELEMENTWISE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct ElementwiseSpec {
  static constexpr llvm::StringLiteral kFamily = "elementwise";
  std::string op, kind;
  int64_t width = 0, from = 0;
  double number = 0;
  int64_t rows = 0; ///< of x, for "accepted"

  /// Reads a vector that all tokens share.
  bool byColumn() const { return op == "scale_columns" || op == "gather"; }

  static FailureOr<ElementwiseSpec> fromAttr(DictionaryAttr spec,
                                             EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ELEMENTWISE_H
