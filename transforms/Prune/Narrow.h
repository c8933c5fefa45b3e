// Takes channels out of a function: types of activations, rows and columns of weights, what norms divide by,
// frequencies of rotations and key-value caches, all at once.
#ifndef SPRIG_TRANSFORMS_PRUNE_NARROW_H
#define SPRIG_TRANSFORMS_PRUNE_NARROW_H

#include "lib/Weights/WeightSpill.h"
#include "lib/Weights/WeightStore.h"
#include "transforms/Prune/Channels.h"
#include "transforms/Prune/PruneReport.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <vector>

namespace mlir::llm {

/// Σ xxᵀ of what meets the weight of a product. Columns of these products are fitted anew, others only chosen.
using InputMoments = llvm::DenseMap<Operation *, ArrayRef<float>>;

class Narrower {
public:
  /// `ridge`: of the mean diagonal of the second moments, added before they are inverted.
  Narrower(WeightStore &store, WeightSpill &spill, double ridge = 0.01) : store(store), spill(spill), ridge(ridge) {}

  /// Only `kept` channels of the group stay, in this order (ascending but for a rotation's pairs, see below). Weights
  /// that are chosen along rows, or along whole blocks of columns, keep their bytes; others are rounded again in the
  /// format that they have. Channels that a rotation turns are kept in pairs, first the first of each pair and then the
  /// second (or side by side where it is interleaved), then those that it lets pass.
  LogicalResult narrow(ChannelGroup &group, ArrayRef<int64_t> kept, const InputMoments &moments = InputMoments());

  /// What `operand` will be once `kept` channels of `group` are left, fitted to the moments of its input. A later
  /// narrow() takes this over, so that moments need not be kept.
  LogicalResult prepare(ChannelGroup &group, const ChannelUse &use, ArrayRef<int64_t> kept, ArrayRef<float> moments);

  /// Measure what is lost in fits (twice the work).
  bool measures = false;
  /// Of the product that lost most.
  LostShares lost;

private:
  /// Integers at the start of the block that holds all of the group; one weight for equal ones.
  FailureOr<Value> indexOf(const ChannelGroup &group, StringRef name, ArrayRef<int64_t> indices);
  FailureOr<Value> cut(const ChannelGroup &group, const ChannelUse &use, ArrayRef<int64_t> indices);
  FailureOr<Value> cutColumns(const ChannelUse &use, ArrayRef<int64_t> indices);
  FailureOr<Value> refit(const ChannelUse &use, ArrayRef<int64_t> indices, ArrayRef<float> moments);
  LogicalResult turn(const ChannelGroup &group, RopeOp rope, ArrayRef<int64_t> kept);

  WeightStore &store;
  WeightSpill &spill;
  double ridge;
  llvm::DenseMap<OpOperand *, Value> prepared;
  std::map<std::pair<const ChannelGroup *, void *>, Value> frequencies; ///< that are left, by those that were
  std::map<std::pair<void *, std::vector<int64_t>>, Value> indexes; ///< by block
};

/// Gives each cache the shape of what is appended to it. Layers of one symbol that differ get symbols of their own.
LogicalResult retypeCaches(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_NARROW_H
