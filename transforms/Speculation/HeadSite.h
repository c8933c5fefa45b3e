// Where heads sit on a model: what they read of @forward, and what they share with it.
#ifndef SPRIG_TRANSFORMS_SPECULATION_HEADSITE_H
#define SPRIG_TRANSFORMS_SPECULATION_HEADSITE_H

#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::llm {

/// How ids become the input of the first layer, and how what the last layer leaves becomes logits.
struct HeadSite {
  /// Of a function (ids, positions, rows) -> logits as it is imported, before norms are fused. Errors are on it.
  static FailureOr<HeadSite> of(func::FuncOp forward);

  int64_t width() const { return cast<RankedTensorType>(hidden.getType()).getDimSize(1); }
  int64_t vocabulary() const { return cast<RankedTensorType>(logits.getType()).getDimSize(1); }
  /// The product whose result, perhaps scaled or capped, are the logits.
  LinearOp product() const { return head; }

  func::FuncOp forward;
  Value embedded; ///< what the first layer reads
  Value hidden;   ///< what the last layer leaves
  Value logits;
  LinearOp head;
};

/// Copies values and what they are made of to where a builder stands, all rows being wanted.
class HeadCopier {
public:
  explicit HeadCopier(OpBuilder &builder) : builder(builder) {}
  /// For a function whose first arguments are those of @forward.
  HeadCopier(OpBuilder &builder, const HeadSite &site, func::FuncOp function);

  void replace(Value value, Value by) { mapping.map(value, by); }
  Value copy(Value value);

private:
  OpBuilder &builder;
  IRMapping mapping;
};

/// @guess_heads_N(ids, positions, rows, hidden), empty. `own`: the hidden state that an earlier guess made.
func::FuncOp beginGuess(const HeadSite &site, unsigned number, StringRef description, bool repeats, bool own,
                        TypeRange results);

/// A copy of `forward` beside it in the module, whose logits are those of every position and not of the last alone. The
/// caller erases it.
func::FuncOp cloneForEveryPosition(func::FuncOp forward);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_SPECULATION_HEADSITE_H
