// The search over the schedules of one product.
//
// Bits first: `split`, `spans` and `chains` fix the order of additions
// (Linear.h), and a token's numbers must not depend on how many tokens the step
// has. So the search works in classes of schedules that add alike, and a
// product takes all its token tiles from one class.
#ifndef SPRIG_TOOLS_TUNE_SEARCH_H
#define SPRIG_TOOLS_TUNE_SEARCH_H

#include "codegen/Target/TargetProfile.h"
#include <functional>
#include <optional>

namespace mlir::llm {

/// What the search asks of a device.
class ScheduleRace {
public:
  virtual ~ScheduleRace() = default;
  /// Whether such a kernel can be made for the target at all.
  virtual bool legal(const ScheduleValues &choices) = 0;
  /// Times `a` and `b` in turn, A-B-B-A, `rounds` times; the time of b as a
  /// part of that of a, one a round. Empty where one of them does not run, or b
  /// computes something else than a.
  virtual std::vector<double> race(const ScheduleValues &a,
                                   const ScheduleValues &b,
                                   unsigned rounds) = 0;
};

struct SearchOptions {
  unsigned rounds = 5;     ///< of the last race, against the default
  unsigned passes = 2;     ///< most passes over all axes
  double gain = 0.03;      ///< what counts as faster
};

/// One token tile of one product in one class.
struct TileResult {
  ScheduleValues choices;
  double ratio = 1; ///< time as a part of the default's; 1: it is the default
};

/// The median.
double middle(std::vector<double> values);
/// Whether races show that b is faster: by `gain` in the middle, and in nearly
/// every round.
bool faster(const std::vector<double> &ratios, double gain);

using ChangesBits = std::function<bool(llvm::StringRef)>;

/// All combinations of the choices that change bits, that of `standard` first;
/// each in the choices of `standard` for the rest.
std::vector<ScheduleValues> classesOf(const ScheduleSpace &space,
                                      const ScheduleValues &standard,
                                      const ChangesBits &changesBits);

/// Goes from `start` to better neighbours, axis by axis, leaving alone what
/// changes bits; then races the best against `standard`. None where nothing of
/// the class runs, or (outside the class of `standard`) nothing is faster.
std::optional<TileResult> searchTile(const ScheduleSpace &space,
                                     const ScheduleValues &start,
                                     const ScheduleValues &standard,
                                     const ChangesBits &changesBits,
                                     ScheduleRace &race,
                                     const SearchOptions &options);

/// The class to take, given what each tile (in the order of the profile, the
/// tile of one token first) got in each: a class where a tile is slower than
/// the default, or missing, is out. Decoding weighs as much as all wider tiles
/// together. The class of the default comes first and is always whole.
size_t bestClass(
    const std::vector<std::vector<std::optional<TileResult>>> &classes);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_TUNE_SEARCH_H
