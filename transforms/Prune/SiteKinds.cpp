#include "transforms/Prune/SiteKinds.h"

#include "transforms/Prune/Attentions.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Remarks.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;

using Sites = std::vector<PruneSite>;

FailureOr<Sites> mlir::llm::feedForwardSites(func::FuncOp function, const ChannelGroups &groups,
                                               int64_t unit, KeepRule keep) {
  Sites sites;
  llvm::DenseSet<ChannelGroup *> seen;
  const WalkResult walked = function.walk([&](Operation *op) {
    if (!isa<ActivationOp, GatedActivationOp, GatedLinearOp>(op))
      return WalkResult::advance();
    const auto type = cast<ShapedType>(op->getResult(0).getType());
    ChannelGroup *group = groups.of(op->getResult(0), unsigned(type.getRank()) - 1);
    if (!group || !group->fixed.empty() || group->returned || !group->layer() || !seen.insert(group).second)
      return WalkResult::advance();
    const int64_t index = int64_t(seen.size()) - 1;
    FailureOr<int64_t> stay = keep({op, "channels", index, group->size, blockOfChannels(*group, unit)});
    if (failed(stay))
      return WalkResult::interrupt();
    if (*stay < group->size)
      sites.push_back({op, "channels", {group}, false, [group, stay = *stay](auto scores, auto &) {
                         return SmallVector<ChannelCut>{{group, largest(scores[0], stay)}};
                       }});
    return WalkResult::advance();
  });
  return walked.wasInterrupted() ? FailureOr<Sites>() : sites;
}

/// The indices of the best `keep` of each `of` that follow one another.
static SmallVector<int64_t> largestOfEach(ArrayRef<double> scores, int64_t of, int64_t keep) {
  SmallVector<int64_t> kept;
  for (int64_t first = 0; first < int64_t(scores.size()); first += of)
    for (int64_t index : largest(scores.slice(size_t(first), size_t(of)), keep))
      kept.push_back(first + index);
  return kept;
}

FailureOr<Sites> mlir::llm::queryHeadSites(func::FuncOp function, const ChannelGroups &groups, int64_t unit,
                                                            KeepRule keep) {
  Sites sites;
  int64_t index = 0;
  for (AttentionSite attention : attentionsOf(function, groups, "llm-prune-heads")) {
    ChannelGroup *group = attention.queryHeads;
    const int64_t shared = attention.shared(), parts = attention.kvHeads->size;
    const int64_t together = std::lcm(parts, unitOfChannels(*group, unit));
    FailureOr<int64_t> stay = keep({attention.op, "query heads", index++, group->size, together, 1, parts});
    if (failed(stay))
      return failure();
    if (*stay < group->size)
      sites.push_back({attention.op, "query heads", {group}, false,
                       [group, shared, each = *stay / parts](auto scores, auto &) {
                         return SmallVector<ChannelCut>{{group, largestOfEach(scores[0], shared, each)}};
                       }});
  }
  return sites;
}

FailureOr<Sites> mlir::llm::kvHeadSites(func::FuncOp function, const ChannelGroups &groups, int64_t unit,
                                                         KeepRule keep) {
  Sites sites;
  int64_t index = 0;
  for (AttentionSite attention : attentionsOf(function, groups, "llm-prune-kv-heads")) {
    ChannelGroup *query = attention.queryHeads, *kv = attention.kvHeads;
    const int64_t shared = attention.shared(), heads = unitOfChannels(*query, unit);
    const int64_t together = heads / std::gcd(heads, shared); // each with its query heads
    FailureOr<int64_t> stay = keep({attention.op, "key-value heads", index++, kv->size, together});
    if (failed(stay))
      return failure();
    if (*stay == kv->size)
      continue;
    const auto choose = [query, kv, shared, stay = *stay](ArrayRef<std::vector<double>> scores,
                                                          const LayerStatistics &) -> FailureOr<SmallVector<ChannelCut>> {
      // A key-value head is worth what its query heads are. Where every query head has its own, both groups are one.
      std::vector<double> sums(scores[0].size() / size_t(shared), 0);
      for (auto [h, value] : llvm::enumerate(scores[0]))
        sums[h / size_t(shared)] += value;
      ChannelCut heads{query, {}}, shareds{kv, largest(sums, stay)};
      for (int64_t g : shareds.kept)
        for (int64_t i = 0; i < shared; ++i)
          heads.kept.push_back(g * shared + i);
      return query == kv ? SmallVector<ChannelCut>{shareds} : SmallVector<ChannelCut>{heads, shareds};
    };
    sites.push_back({attention.op, "heads", {query}, false, choose});
  }
  return sites;
}

FailureOr<Sites> mlir::llm::sitesOf(SiteKind kind, func::FuncOp function, const ChannelGroups &groups,
                                       ChannelUnits units, KeepRule keep) {
  switch (kind) {
  case SiteKind::FeedForward:
    return feedForwardSites(function, groups, units.any, keep);
  case SiteKind::QueryHeads:
    return queryHeadSites(function, groups, units.any, keep);
  case SiteKind::KVHeads:
    return kvHeadSites(function, groups, units.any, keep);
  case SiteKind::HeadWidth:
    return headWidthSites(function, groups, units, keep);
  }
  return Sites();
}

LogicalResult mlir::llm::pruneSites(ModuleOp module, SiteKind kind, const PruneSettings &settings, KeepRule keep) {
  FailureOr<SitePruner> pruner = SitePruner::create(module, settings);
  if (failed(pruner))
    return failure();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    const ChannelGroups groups(function);
    FailureOr<Sites> sites = sitesOf(kind, function, groups, settings, keep);
    if (failed(sites) || failed(pruner->run(function, *sites)))
      return failure();
  }
  describeShape(module);
  return success();
}

void mlir::llm::describeShape(ModuleOp module) {
  int64_t channels = 0, heads = 0, kvHeads = 0, size = 0;
  module.walk([&](Operation *op) {
    const auto last = [](Value value) { return cast<ShapedType>(value.getType()).getShape().back(); };
    if (isa<GatedActivationOp, ActivationOp, GatedLinearOp>(op))
      channels = std::max(channels, last(op->getResult(0)));
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      const auto cache = cast<KVType>(attention.getCache().getType());
      heads = std::max(heads, cast<ShapedType>(attention.getQuery().getType()).getDimSize(1));
      kvHeads = std::max(kvHeads, cache.getHeads());
      size = std::max(size, cache.getKeyWidth());
    }
  });
  if (channels)
    describeModel(module, "feed_forward", channels);
  if (heads) {
    describeModel(module, "heads", heads);
    describeModel(module, "kv_heads", kvHeads);
    describeModel(module, "head_size", size);
  }
}
