#include "transforms/Prune/Attentions.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/SiteKinds.h"
#include "transforms/Quantize/Products.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;

namespace {

/// Channels of queries and keys that stay or go together, in the order that a rotation wants them in.
struct Units {
  SmallVector<SmallVector<int64_t, 2>> channels; ///< a pair that turns, or one channel that does not
  int64_t pairs = 0;                             ///< of these, the first
  bool interleaved = false;

  explicit Units(const ChannelGroup &width) {
    int64_t turned = 0;
    for (Operation *op : width.rotations) {
      auto rope = cast<RopeOp>(op);
      turned = rope.getRotatedDims(), interleaved = rope.getInterleaved();
    }
    pairs = turned / 2;
    for (int64_t i = 0; i < pairs; ++i)
      interleaved ? channels.push_back({2 * i, 2 * i + 1}) : channels.push_back({i, i + pairs});
    for (int64_t i = turned; i < width.size; ++i)
      channels.push_back({i});
  }

  /// The best units that have `keep` channels together, with one pair among them at least.
  SmallVector<int64_t> best(ArrayRef<double> scores, int64_t keep) const {
    std::vector<double> each; // a channel that does not turn counts half a unit, so pairs of them do
    for (auto [u, unit] : llvm::enumerate(channels))
      each.push_back(scores[u] / double(unit.size()));
    SmallVector<int64_t> order = largest(each, int64_t(channels.size()));
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return each[size_t(a)] != each[size_t(b)] ? each[size_t(a)] > each[size_t(b)] : a < b;
    });
    SmallVector<int64_t> kept;
    bool hasPair = pairs == 0;
    for (int64_t u : order) {
      const int64_t size = int64_t(channels[size_t(u)].size());
      const int64_t reserved = hasPair || u < pairs ? 0 : 2;
      if (size + reserved > keep)
        continue;
      kept.push_back(u);
      hasPair |= u < pairs;
      keep -= size;
    }
    llvm::sort(kept);
    return ordered(kept);
  }

private:
  SmallVector<int64_t> ordered(ArrayRef<int64_t> kept) const {
    SmallVector<int64_t> firsts, seconds, rest;
    for (int64_t u : kept)
      if (u >= pairs) {
        rest.push_back(channels[size_t(u)][0]);
      } else {
        firsts.push_back(channels[size_t(u)][0]);
        (interleaved ? firsts : seconds).push_back(channels[size_t(u)][1]);
      }
    firsts.append(seconds);
    firsts.append(rest);
    return firsts;
  }
};

bool turnAlike(const ChannelGroup &width) {
  return llvm::all_of(width.rotations, [&](Operation *op) {
    auto a = cast<RopeOp>(op), b = cast<RopeOp>(width.rotations.front());
    return a.getRotatedDims() == b.getRotatedDims() && a.getInterleaved() == b.getInterleaved();
  });
}

/// A pair adds q.k of its channels to a score: it is worth the mean square of its part of a query, times that of a key.
/// These come from the squares of the inputs of the products, as if they were independent; a norm between takes the mean
/// away and multiplies by its factor. Without inputs, what `plain` says of each channel counts.
FailureOr<std::vector<double>> unitScores(const ChannelGroup &keys, const Units &units, ArrayRef<double> plain,
                                          const LayerStatistics &inputs, WeightStore *store) {
  std::vector<double> perChannel(plain.begin(), plain.end());
  if (store) {
    std::fill(perChannel.begin(), perChannel.end(), 1);
    for (const ChannelUse &use : keys.uses) {
      const bool product = llvm::is_contained(productWeights(use.owner()), use.operand);
      const bool factor = isa<RmsNormOp, LayerNormOp>(use.owner());
      const auto found = inputs.find(use.owner());
      if (use.axis != 0 || !(product || factor) || (product && found == inputs.end()))
        continue;
      std::vector<double> energy(size_t(keys.size), 0);
      const ArrayRef<double> squares = factor ? ArrayRef<double>() : ArrayRef<double>(found->second->squares);
      if (failed(addSquares(use, keys.size, squares, *store, energy)))
        return failure();
      const double sum = std::accumulate(energy.begin(), energy.end(), 1e-300);
      for (auto [value, each] : llvm::zip(perChannel, energy))
        value *= each / sum;
    }
  }
  std::vector<double> result;
  for (const auto &unit : units.channels) {
    double sum = 0;
    for (int64_t c : unit)
      sum += perChannel[size_t(c)];
    result.push_back(sum);
  }
  return result;
}

} // namespace

FailureOr<std::vector<PruneSite>> mlir::llm::headWidthSites(func::FuncOp function, const ChannelGroups &groups,
                                                            ChannelUnits units, KeepRule keep) {
  std::vector<PruneSite> sites;
  int64_t index = 0;
  for (AttentionSite attention : attentionsOf(function, groups, "llm-prune-head-dim")) {
    ChannelGroup *keys = attention.keyWidth, *values = attention.valueWidth;
    if (!turnAlike(*keys))
      return attention.op.emitOpError("expects queries and keys that turn alike"), failure();
    const int64_t pair = std::lcm<int64_t>(keys->rotations.empty() ? 1 : 2, units.caches);
    FailureOr<int64_t> stayValues =
        keep({attention.op, "channels of values", index, values->size,
              std::lcm(blockOfChannels(*values, units.any), units.caches)});
    if (failed(stayValues))
      return failure();
    // A row of the cache has the width of a key, and values no more than that.
    const int64_t least = std::min(*stayValues, keys->size);
    FailureOr<int64_t> stay = keep({attention.op, "channels of queries and keys", index, keys->size, pair, least});
    if (failed(stay))
      return failure();
    ++index;
    if (*stay < keys->size)
      sites.push_back({attention.op, "channels of queries and keys", {keys}, true,
                       [keys, stay = std::max(*stay, pair)](
                           ArrayRef<std::vector<double>> scores,
                           const LayerStatistics &inputs) -> FailureOr<SmallVector<ChannelCut>> {
                         const Units units(*keys);
                         // Scores of a kind that reads columns say nothing here: these channels have none.
                         const bool silent = llvm::all_of(scores[0], [](double value) { return value == 0; });
                         WeightStore *store = silent ? WeightStore::of(keys->values[0].first.getContext()) : nullptr;
                         auto value = unitScores(*keys, units, scores[0], inputs, store);
                         if (failed(value))
                           return failure();
                         return SmallVector<ChannelCut>{{keys, units.best(*value, stay)}};
                       }});
    if (*stayValues < values->size)
      sites.push_back({attention.op, "channels of values", {values}, false, [values, stay = *stayValues](auto scores, auto &) {
                         return SmallVector<ChannelCut>{{values, largest(scores[0], stay)}};
                       }});
  }
  return sites;
}
