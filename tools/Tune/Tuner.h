// Tunes products one after another on one device.
#ifndef SPRIG_TOOLS_TUNE_TUNER_H
#define SPRIG_TOOLS_TUNE_TUNER_H

#include "tools/Tune/KernelBench.h"
#include "tools/Tune/Products.h"
#include "tools/Tune/State.h"
#include <chrono>

namespace mlir::llm {

struct TuneOptions {
  std::vector<int64_t> tiles; ///< empty: those of the profile
  SearchOptions search;
  double minutes = 0; ///< 0: as long as it takes
  /// Called before each search, with what it is of.
  std::function<void(const std::string &)> progress;
};

/// What was chosen for one token tile of a product.
struct TunedTile {
  int64_t tokens = 1;
  ScheduleValues standard;
  TileResult result;
};

struct TunedProduct {
  Product product;
  std::vector<TunedTile> tiles;
};

class Tuner {
public:
  Tuner(MLIRContext &context, const TargetProfile &profile,
        const TuneDevice &device, TuneState &state, TuneOptions options);

  /// An error is that of the first kernel that does not run by default, or of
  /// the state file.
  llvm::Expected<TunedProduct> tune(const Product &product);
  /// The time is over: products that were not tuned keep the default.
  bool outOfTime() const { return late; }

private:
  llvm::Expected<std::optional<TileResult>>
  search(const Product &product, int64_t tokens, const ScheduleValues &start,
         const ScheduleValues &standard);
  FailureOr<ScheduleValues> standard(const Product &product, int64_t tokens);

  MLIRContext &context;
  const TargetProfile &profile;
  const TuneDevice &device;
  TuneState &state;
  TuneOptions options;
  std::chrono::steady_clock::time_point begin;
  bool late = false;
};

/// The profile with rules for what was found, before those that it had.
TargetProfile tunedProfile(const TargetProfile &profile,
                           ArrayRef<TunedProduct> products, StringRef name,
                           StringRef device);

/// "rows 2 -> 4, texels 3 -> 1", or "the default".
std::string describeChange(const ScheduleValues &from,
                           const ScheduleValues &to);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_TUNE_TUNER_H
