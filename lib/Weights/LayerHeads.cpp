#include "lib/Weights/LayerHeads.h"

#include <atomic>

namespace mlir::llm {

static std::atomic<const LayerHeadReader *> registered = nullptr;

const LayerHeadReader *layerHeadReader() { return registered; }

void setLayerHeadReader(const LayerHeadReader &reader) { registered = &reader; }

} // namespace mlir::llm
