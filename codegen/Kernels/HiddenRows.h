// hidden_rows: what a layer that reads a token together with the hidden state of
// the token before it needs from step to step. The rows of the last kRing slots
// lie in a ring, slot s in place s mod kRing, so that a sequence may be cut back
// that far.
//
// Spec: {op, width = numbers of a row, rows? = of x}. op and bindings (f32, the
// last written):
//   "previous" x [T][width], ring, control, y [T][width]: row t - 1 of x for row
//   t, for row 0 that of the slot before the step, zeros where there is none ·
//   "parents" the same in a tree: the row of the node's parent ·
//   "above" x [rows][width], first [width], control, y [T][width]: in a tree of
//   guesses the row of x of the node's parent, at roots `first` ·
//   "keep" x [T][width], control, ring: the step's rows, before the control
//   block goes on to the next step ·
//   "accepted" x [rows][width], control, ring: node 0 and the nodes that a
//   verify step accepted, after it did.
#ifndef SPRIG_CODEGEN_KERNELS_HIDDENROWS_H
#define SPRIG_CODEGEN_KERNELS_HIDDENROWS_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct HiddenRowsSpec {
  static constexpr llvm::StringLiteral kFamily = "hidden_rows";
  static constexpr int64_t kRing = 64;
  std::string op;
  int64_t width = 0;
  int64_t rows = 0; ///< of x, for "accepted" and "above"

  /// Leaves a row for each of the step's.
  bool reads() const { return op != "keep" && op != "accepted"; }
  /// Reads parents of the step's rows.
  bool tree() const { return op == "parents" || op == "above"; }
  uint64_t ringBytes() const { return uint64_t(kRing * width) * 4; }

  static FailureOr<HiddenRowsSpec> fromAttr(DictionaryAttr spec,
                                            EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_HIDDENROWS_H
