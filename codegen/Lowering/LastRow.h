// A program that samples after several tokens wants the logits of the last one
// alone. Behind the last operation that reads other rows (attention, as a rule)
// nothing is wanted of the other rows, so they are not computed there.
#ifndef SPRIG_CODEGEN_LOWERING_LASTROW_H
#define SPRIG_CODEGEN_LOWERING_LASTROW_H

#include "codegen/Lowering/ProgramLowering.h"

namespace mlir::llm {

/// Whether `llm.select_rows` leaves one row of several: the last.
bool choosesLast(ProgramLowering &p);

struct LastRow {
  /// The first operation of which one row is enough; null where that would save
  /// no product.
  Operation *first = nullptr;
  /// What it and those after it read, of which the last row is to be picked.
  SmallVector<Value> values;

  static LastRow of(ProgramLowering &p);
};

/// Leaves the last row of `values` alone. Before `first` is lowered.
LogicalResult pickLastRow(ProgramLowering &p, const LastRow &rows);

/// The row of the step's last token in a buffer of its own.
LogicalResult dispatchLast(ProgramLowering &p, Operation *op, Value input,
                           Value x, Value y, StringRef what);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_LASTROW_H
