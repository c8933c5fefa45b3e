// Moving a factor of each input column of some products into what makes that input, the function unchanged:
//
//   rms_norm(x) gamma(g), products read it      g / s,  W · diag(s)
//   gate(…) * up: down reads it                 up rows / s,  down · diag(s)
//   attention: o reads it                       rows of v / s,  o · diag(s), one s for all heads of a key head
//
// What llm-smooth and AWQ do before they quantise.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_INPUTSCALES_H
#define SPRIG_TRANSFORMS_QUANTIZE_INPUTSCALES_H

#include "lib/Weights/WeightSpill.h"
#include "transforms/Quantize/Products.h"

namespace mlir::llm {

/// Products that read one value, and who takes the inverse of its scales.
struct ScalableInput {
  enum class Producer { Norm, Up, Values };

  Value input;
  SmallVector<LinearOp> products;
  Producer producer;
  Operation *source; ///< the rms_norm, or the linear whose rows are scaled
  /// Columns that share a factor lie `period` apart for each of `share` heads: see foldedIndex. 1 where each has its own.
  int64_t share = 1, headSize = 0;

  int64_t width() const;
  /// Factors that can differ.
  int64_t factors() const { return width() / share; }
  /// The factor of a column: query heads of one key head have one.
  int64_t factorOf(int64_t column) const {
    return share == 1 ? column : column / (headSize * share) * headSize + column % headSize;
  }
};

/// The inputs of linears in `op` whose columns can be scaled, in program order.
SmallVector<ScalableInput> scalableInputs(Operation *op);

/// Scales the columns of the products by `scales` (one a factor, positive), and the producer by the inverse. The new
/// weights are expressions over the old ones.
LogicalResult scaleInput(ScalableInput &input, ArrayRef<double> scales, WeightSpill &spill);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_INPUTSCALES_H
