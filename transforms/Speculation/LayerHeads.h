// Heads with a layer of their own (lib/Weights/LayerHeads.h) on a model: functions that guess, and what the model's own
// function does to fill the layer's cache with what is true.
#ifndef SPRIG_TRANSFORMS_SPECULATION_LAYERHEADS_H
#define SPRIG_TRANSFORMS_SPECULATION_LAYERHEADS_H

#include "lib/Weights/LayerHeads.h"
#include "lib/Weights/WeightStore.h"
#include "transforms/Speculation/HeadSite.h"

namespace mlir::llm {

/// The heads of a file that a reader knows, with config.json beside it. Errors are on the module.
LogicalResult attachLayerHeads(const HeadSite &site, const WeightSource &file, WeightStore &store);

/// The layer of the model's own checkpoint that predicts the token after the next.
LogicalResult attachPredictLayer(const HeadSite &site, WeightStore &store);

/// Takes out of a copy of @forward what fills caches that it does not read itself.
void removeHeadUpkeep(func::FuncOp function);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_SPECULATION_LAYERHEADS_H
