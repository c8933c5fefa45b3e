// The sites that each structured pass knows: feed-forward channels, query heads, key-value heads with theirs, and widths of
// heads. How many stay is the caller's rule: a share, or a shape.
#ifndef SPRIG_TRANSFORMS_PRUNE_SITEKINDS_H
#define SPRIG_TRANSFORMS_PRUNE_SITEKINDS_H

#include "transforms/Prune/Sites.h"

namespace mlir::llm {

/// What a rule is asked about: the `index`-th site of its kind in the function.
struct SiteSize {
  Operation *at;
  StringRef what; ///< "channels", "query heads"
  int64_t index, size;
  int64_t unit; ///< channels go in multiples of this
  int64_t least = 1; ///< so many stay at least
  int64_t parts = 1; ///< as many go from each of so many runs: query heads from those of a key-value head
};
/// How many channels of a site stay, at least one.
using KeepRule = llvm::function_ref<FailureOr<int64_t>(const SiteSize &)>;

/// Multiples in which channels go at least, as PruneSettings has them.
struct ChannelUnits {
  int64_t any = 1, caches = 1;
  ChannelUnits(int64_t any) : any(any) {}
  ChannelUnits(const PruneSettings &settings) : any(settings.unit), caches(settings.cacheUnit) {}
};

/// What is between the two products of each feed-forward block, gated or not, of experts or not.
/// Channels go in whole blocks of the weights' formats, and in multiples of `unit`.
FailureOr<std::vector<PruneSite>> feedForwardSites(func::FuncOp function, const ChannelGroups &groups, int64_t unit,
                                                   KeepRule keep);
/// Query heads, as many of each key-value head. The output product loses a multiple of `unit` columns, here and below.
FailureOr<std::vector<PruneSite>> queryHeadSites(func::FuncOp function, const ChannelGroups &groups, int64_t unit,
                                                 KeepRule keep);
/// Key-value heads, and the query heads that read them.
FailureOr<std::vector<PruneSite>> kvHeadSites(func::FuncOp function, const ChannelGroups &groups, int64_t unit,
                                              KeepRule keep);
/// Channels of queries and keys (pairs where a rotation turns them), and channels of values: two sites an attention, in
/// turn.
FailureOr<std::vector<PruneSite>> headWidthSites(func::FuncOp function, const ChannelGroups &groups, ChannelUnits units,
                                                 KeepRule keep);

enum class SiteKind { FeedForward, QueryHeads, KVHeads, HeadWidth };
FailureOr<std::vector<PruneSite>> sitesOf(SiteKind kind, func::FuncOp function, const ChannelGroups &groups,
                                          ChannelUnits units, KeepRule keep);

/// Prunes all functions of a module at the sites of one kind.
LogicalResult pruneSites(ModuleOp module, SiteKind kind, const PruneSettings &settings, KeepRule keep);

/// Says in `llm.model` what the widest layer has now.
void describeShape(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_SITEKINDS_H
