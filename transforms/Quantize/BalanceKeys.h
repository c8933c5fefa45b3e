// Queries and keys of like size in each channel, so that rounding a key costs the scores less.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_BALANCEKEYS_H
#define SPRIG_TRANSFORMS_QUANTIZE_BALANCEKEYS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::llm {

/// Moves a factor a channel from keys to queries, through the factors of the norms that both have in models with such
/// norms (Gemma 3, Qwen 3): `k' = k s`, `q' = q / s`, `s = sqrt(γq / γk)`, one for the channels of a pair that a rotation
/// turns. No score changes, and of all factors these make |q'| |k'| least, by which the error of a key that is rounded in
/// another basis grows (after SmoothAttention: Lin et al., arXiv 2405.04532, who measure what norms tell here). Attentions
/// whose queries or keys come from elsewhere are left, as is everything in a tool that reads no weights (llm-opt). Errors
/// are diagnostics: a weight that cannot be read, or no place for new ones where there are some to write.
LogicalResult balanceKeys(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_BALANCEKEYS_H
