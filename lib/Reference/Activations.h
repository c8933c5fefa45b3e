// The source of activations that there is: the reference evaluator reading a text (lib/Calibration).
#ifndef SPRIG_LIB_REFERENCE_ACTIVATIONS_H
#define SPRIG_LIB_REFERENCE_ACTIVATIONS_H

#include "lib/Calibration/ActivationSource.h"
#include "lib/Weights/WeightStore.h"
#include <optional>

namespace mlir::llm::reference {

struct ActivationSettings {
  std::vector<int32_t> tokens;  ///< of the calibration text
  std::optional<int32_t> begin; ///< put before each window
  std::string cacheFolder;      ///< of statistics; "": none
  unsigned threads = 0;         ///< 0: one a core
  uint64_t cacheBytes = 0;      ///< for decoded weights; 0: no limit
  /// Called now and then with how much of a run is done, in ops of the body times windows.
  std::function<void(int64_t done, int64_t all)> progress;
};

/// A source to attach to a context with ActivationSource::attach.
std::shared_ptr<ActivationSource> makeActivationSource(std::shared_ptr<WeightStore> files, ActivationSettings settings);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_ACTIVATIONS_H
