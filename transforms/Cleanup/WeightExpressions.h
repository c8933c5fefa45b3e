// Weight expressions in their plain form.
#ifndef SPRIG_TRANSFORMS_CLEANUP_WEIGHTEXPRESSIONS_H
#define SPRIG_TRANSFORMS_CLEANUP_WEIGHTEXPRESSIONS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::llm {

/// Patterns that shorten chains of slice, concat, reshape and transpose. They hold on activations as well.
void populateWeightExpressionPatterns(RewritePatternSet &patterns);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_CLEANUP_WEIGHTEXPRESSIONS_H
