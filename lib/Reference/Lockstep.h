// Several windows of a text through one function, op by op of its body: all windows pass an op before the next begins.
#ifndef SPRIG_LIB_REFERENCE_LOCKSTEP_H
#define SPRIG_LIB_REFERENCE_LOCKSTEP_H

#include "lib/Calibration/StatisticsCache.h"
#include "lib/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::llm::reference {

class Lockstep {
public:
  Lockstep(Interpreter<float> &interpreter, func::FuncOp function)
      : interpreter(interpreter), function(function), body(function.getBody().front()) {}

  /// Binds the windows to the arguments (ids, positions, rows). Only the last row's logits are asked for.
  LogicalResult begin(ArrayRef<std::vector<int32_t>> windows);
  size_t windows() const { return frames.size(); }
  /// Ops of the body but its terminator.
  Block &block() const { return body; }

  /// One window through an op; nothing is dropped, so it can be repeated.
  LogicalResult execute(Operation *op, size_t window) { return interpreter.execute(op, frames[window], /*keep=*/true); }
  /// Drops what no op behind `op` reads: values and caches.
  void sweep(Operation *op);

  /// The values alive behind an op; none where they cannot be saved (a cache or an integer is alive).
  std::optional<std::vector<SavedValue>> save() const;
  /// Puts saved values in place; false where they do not fit the function.
  bool restore(ArrayRef<SavedValue> values);

private:
  /// The op of the body that is or holds `op`.
  Operation *inBody(Operation *op) const { return body.findAncestorOpInBlock(*op); }
  bool readAfter(Value value, Operation *op) const;

  Interpreter<float> &interpreter;
  func::FuncOp function;
  Block &body;
  std::vector<std::unique_ptr<KVStore<float>>> states;
  std::vector<Frame<float>> frames;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_LOCKSTEP_H
