// Statistics of one calibration run on disk: a folder of files named by the run's key and the place in the function.
// A file that is cut short, of another version or damaged is as good as absent.
#ifndef SPRIG_LIB_CALIBRATION_STATISTICSCACHE_H
#define SPRIG_LIB_CALIBRATION_STATISTICSCACHE_H

#include "lib/Calibration/ActivationSource.h"
#include <optional>
#include <string>

namespace mlir::llm {

/// One tensor that is alive between two ops of a function: which value it is, and its numbers.
struct SavedValue {
  int64_t op = 0, result = 0; ///< place in the body (-1: an argument), and number of the result
  int64_t window = 0;
  std::vector<int64_t> shape;
  std::vector<float> numbers;
};

class StatisticsCache {
public:
  /// An empty folder caches nothing. The key tells runs apart that may differ in result.
  StatisticsCache(StringRef folder, uint64_t key) : folder(folder.str()), key(key) {}

  /// The distinct statistics of the op at `place` of the body, in program order.
  std::optional<std::vector<InputStatistics>> load(int64_t place) const;
  /// Failing to write is no error: the run only cannot be resumed there.
  void store(int64_t place, ArrayRef<std::shared_ptr<const InputStatistics>> statistics) const;

  /// What is alive behind the op at `place`. Only the last state that was saved is kept.
  std::optional<std::vector<SavedValue>> loadState(int64_t place) const;
  void storeState(int64_t place, ArrayRef<SavedValue> values);
  void dropState();

private:
  std::string path(int64_t place, StringRef kind) const;
  void write(StringRef path, StringRef content) const;

  std::string folder, state;
  uint64_t key;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_CALIBRATION_STATISTICSCACHE_H
