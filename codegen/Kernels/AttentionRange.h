// What the attention kernels share: which positions a token sees, which splits
// these lie in, and how the results of splits are folded.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONRANGE_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONRANGE_H

#include "codegen/Kernels/BlockShape.h"
#include "codegen/Kernels/StepControl.h"
#include "codegen/Kernels/TreeTable.h"

namespace mlir::llm {

/// Lengths that do not depend on the kernel family.
struct AttentionShape {
  int64_t capacity, window, sinks, split;
  int64_t tree = 0;         ///< width of a step of tree nodes
  unsigned treeBinding = 0; ///< of its table
  int64_t hidden = 0;       ///< first positions that no token sees
  BlockShape blocks = {};
  /// Splits below the first one that the step's window reaches exist too, for
  /// the sinks.
  bool fromStart() const { return window == 0 || sinks != 0; }
};

class AttentionRange {
public:
  AttentionRange(KernelBuilder &builder, const AttentionShape &shape,
                 unsigned control);

  /// One past the last position that row `token` of the step sees. Rows past
  /// Count see what the last one sees.
  Value limit(Value token);
  /// The first position that the window of a token with `limit` shows.
  Value first(Value limit);
  /// Whether a token with `limit` sees `position`.
  Value sees(Value limit, Value position);
  /// Whether its window or the sinks reach into [begin, begin + length).
  Value reaches(Value limit, Value begin, int64_t length);
  /// Whether it sees anything of them.
  Value seesAny(Value limit, Value begin, int64_t length);
  /// Whether its window and the sinks lie in `split` or on both sides of it.
  Value spans(Value limit, Value split);
  /// Whether one split holds all that it sees.
  Value seesOneSplit(Value limit);
  /// The lowest split that any token of the step sees.
  Value firstSplit();
  /// Splits from `firstSplit` to the last one that any token sees.
  Value splits();
  /// The slot in which row `token` finds what belongs to `position`.
  Value slot(Value token, Value position);
  /// Valid tokens of the step.
  Value count() const { return valid; }

  /// Numbers that stand for no position at all.
  static constexpr float kHidden = -1e30f;

private:
  Value windowStart(Value limit);
  /// Whether a token with `limit` sees block `block`, of those up to its own.
  Value seesBlock(Value limit, Value block);

  KernelBuilder &b;
  AttentionShape shape;
  unsigned control;
  Value base, valid, end;
};

/// A running softmax over some positions: {maximum, sum of the weights,
/// weighted values …}. Folds that of the next split into the one so far.
Values foldSplit(KernelBuilder &builder, ValueRange known, ValueRange next);
/// Before the first split.
Values emptyFold(KernelBuilder &builder, int64_t numbers);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONRANGE_H
