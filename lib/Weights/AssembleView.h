// `llm.assemble`: the numbers of a quantised tensor that a checkpoint stores in
// parts, as GPTQ, AWQ and compressed-tensors do.
#ifndef SPRIG_LIB_WEIGHTS_ASSEMBLEVIEW_H
#define SPRIG_LIB_WEIGHTS_ASSEMBLEVIEW_H

#include "lib/Weights/WeightViews.h"

namespace mlir::llm::weights {

struct AssembleParts {
  Expr codes;
  std::vector<Expr> scales, zeros;
  Expr codebook; ///< null where the type needs none
  Expr patterns; ///< which of M numbers are kept; null but for N:M
  SmallVector<int64_t>
      order; ///< column of the codes for each of ours, or empty
};

/// Rows of a format of groups (lib/Quant/Affine.h) where the type has one and
/// the scales are stored as the type says, else of f32. Errors, on `op`: parts whose sizes do not fit, an
/// order with a column that is not there, and types that have no numbers of
/// their own here (grids).
FailureOr<Expr> assemble(AssembleOp op, AssembleParts parts);

} // namespace mlir::llm::weights

#endif // SPRIG_LIB_WEIGHTS_ASSEMBLEVIEW_H
