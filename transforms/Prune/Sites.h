// The places of a function where channels go, and the way through them: what is worth least is measured, chosen, taken
// out and made up for, layer by layer, so that later layers are fitted to what earlier ones have become.
#ifndef SPRIG_TRANSFORMS_PRUNE_SITES_H
#define SPRIG_TRANSFORMS_PRUNE_SITES_H

#include "lib/Calibration/ActivationSource.h"
#include "transforms/Prune/Narrow.h"
#include "transforms/Prune/PruneReport.h"

#include <random>

namespace mlir::llm {

/// The score where a pass knows what goes: all is worth the same.
inline constexpr StringLiteral kNoScore = "none of its own";

struct PruneSettings {
  StringRef pass;
  std::string score = "wanda"; ///< magnitude, wanda, random or kNoScore
  bool recover = true;         ///< columns that stay are fitted by least squares
  int64_t tokens = 16384, window = 512;
  int64_t unit = 1;            ///< channels go in multiples of this at least
  int64_t cacheUnit = 1;       ///< the same of keys and values as caches hold them
  bool quiet = false;          ///< a trial: says nothing of what it does

  bool needsText() const { return recover || score == "wanda"; }
};

/// Whether `ratio` can be the share of something that goes; else an error that names the pass.
LogicalResult checkShare(ModuleOp module, StringRef pass, double ratio);
/// Whether channels can go in multiples of `unit`; else an error that names the pass.
LogicalResult checkUnit(ModuleOp module, StringRef pass, int64_t unit);
/// Whether products are not joined with what is around them yet; else an error that names the pass.
LogicalResult checkNotFused(ModuleOp module, StringRef pass);

/// What goes from one group.
struct ChannelCut {
  ChannelGroup *group;
  SmallVector<int64_t> kept;
};

/// Groups that lose channels together, within one layer.
struct PruneSite {
  Operation *at; ///< for messages
  std::string what; ///< "channels", "query heads"
  SmallVector<ChannelGroup *> groups;
  /// Whether the inputs of the products that make these channels are wanted too, not only of those that read them.
  bool wantsMakers = false;
  /// What stays, by the scores of each of `groups`.
  std::function<FailureOr<SmallVector<ChannelCut>>(ArrayRef<std::vector<double>> scores, const LayerStatistics &inputs)>
      choose;
};

class SitePruner {
public:
  /// Errors, on `module`: a score that is not known, no place for new weights.
  static FailureOr<SitePruner> create(ModuleOp module, PruneSettings settings);

  /// Does all of them, and gives caches their new shapes.
  LogicalResult run(func::FuncOp function, MutableArrayRef<PruneSite> sites);

  /// How much each channel of a group is worth.
  ///   magnitude: the squares of all its weights
  ///   wanda: of its columns, each square times that of what meets it (Sun et al., arXiv 2306.11695)
  FailureOr<std::vector<double>> scores(const ChannelGroup &group, const LayerStatistics &inputs);

  /// What the text says; null with an error on `function` where no text was named.
  ActivationSource *activations(func::FuncOp function) const;

  WeightStore &weights() { return *store; }
  WeightSpill &newWeights() { return *spill; }

private:
  SitePruner(ModuleOp module, PruneSettings settings, WeightStore *store, WeightSpill *spill)
      : module(module), settings(std::move(settings)), store(store), spill(spill) {}
  LogicalResult prune(PruneSite &site, const LayerStatistics &inputs);
  PruneRecord recordOf(const PruneSite &site, const ChannelCut &cut, int64_t before,
                       ArrayRef<std::vector<double>> scores, const LostShares &lost) const;

  ModuleOp module;
  PruneSettings settings;
  WeightStore *store;
  WeightSpill *spill;
  std::mt19937_64 random{1};
};

/// Adds to `sums[c]` the squares of a weight's numbers that belong to channel c, each times the factor of its column
/// (of the last dimension) where there are factors.
LogicalResult addSquares(const ChannelUse &use, int64_t channels, ArrayRef<double> factors, WeightStore &store,
                         MutableArrayRef<double> sums);

/// Columns come in blocks: a multiple of so many channels is a whole number of them in every product that reads the group
/// (`unit`, at least: of a format to come).
int64_t blockOfChannels(const ChannelGroup &group, int64_t unit);
/// Where a multiple of so many channels goes, every product that reads the group loses a multiple of `unit` columns,
/// whatever its format.
int64_t unitOfChannels(const ChannelGroup &group, int64_t unit);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_SITES_H
