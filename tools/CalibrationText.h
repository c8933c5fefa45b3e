// A text as the source of activations that passes ask for (lib/Calibration).
#ifndef SPRIG_TOOLS_CALIBRATIONTEXT_H
#define SPRIG_TOOLS_CALIBRATIONTEXT_H

#include "lib/Weights/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <string>

namespace mlir::llm {

struct CalibrationText {
  std::string file;
  std::string cacheFolder; ///< of statistics; empty: none
  std::function<void(int64_t done, int64_t all)> progress;
};

/// Gives the context of `module` the activations of the reference evaluator over the text, cut by the tokenizer that
/// the module names. Errors are diagnostics.
LogicalResult attachCalibration(ModuleOp module, std::shared_ptr<WeightStore> weights, const CalibrationText &text);

/// Where statistics are kept unless a user says otherwise: sprig/calibration in the folder of caches, or none.
std::string defaultCalibrationCache();

} // namespace mlir::llm

#endif // SPRIG_TOOLS_CALIBRATIONTEXT_H
