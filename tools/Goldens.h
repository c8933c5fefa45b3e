// Golden vectors of a package: what the reference evaluator says about a few
// tokens, so that a device can be told from a device whose driver computes
// something else.
#ifndef SPRIG_TOOLS_GOLDENS_H
#define SPRIG_TOOLS_GOLDENS_H

#include "codegen/Package/PackageWriter.h"
#include "lib/Weights/WeightStore.h"

namespace mlir::llm {

/// Evaluates @forward of `module` in f32 on up to `count` tokens of a fixed
/// text (where `extras` has a tokenizer for it, otherwise of tokens spread over
/// the vocabulary), starting from an empty cache, and adds the result to
/// `extras`. Decoded weights are not kept, so that the memory this takes is that
/// of the largest of them. A module without such a function gets no vector.
/// Errors are diagnostics at the op that cannot be evaluated.
LogicalResult addGoldens(ModuleOp module, std::shared_ptr<WeightStore> weights,
                         int64_t count, PackageExtras &extras);

/// Numbers of the largest weight of `module`.
int64_t largestWeight(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_GOLDENS_H
