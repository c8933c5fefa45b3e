// Which dimensions of a function share their channels: a row of one weight, a column of another, an element of a norm's
// factor and of every activation between them are one channel, and go together or not at all (the coupled groups of
// LLM-Pruner, arXiv 2305.11627, found in the IR rather than listed by family).
//
// Each op links dimensions of its activations and says which axis of its weights they run along. What an op ties to a
// size or an order of its own (a Hadamard transform, a slice, the logits) is fixed, and its group with it.
#ifndef SPRIG_TRANSFORMS_PRUNE_CHANNELS_H
#define SPRIG_TRANSFORMS_PRUNE_CHANNELS_H

#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::llm {

/// An axis of a weight that runs along channels. A product of a row TxHxE has H*E rows: channel c of H stands for E of
/// them, channel c of E for H.
struct ChannelUse {
  OpOperand *operand = nullptr;
  int64_t axis = 0;
  int64_t outer = 1, inner = 1; ///< index along the axis = (o * channels + c) * inner + i

  Operation *owner() const { return operand->getOwner(); }
  /// Whether these are columns of a product: what meets its input.
  bool isColumns() const;
  /// What is left of the axis when `kept` are left of `channels`.
  SmallVector<int64_t> indices(ArrayRef<int64_t> kept, int64_t channels) const;
};

struct ChannelGroup {
  int64_t size = 0;
  SmallVector<std::pair<Value, unsigned>> values; ///< activations, and the dimension
  SmallVector<ChannelUse> uses;
  SmallVector<Operation *> norms;                 ///< that take a mean over these channels
  SmallVector<Operation *> rotations;             ///< that turn pairs of these channels
  std::string fixed;                              ///< why none of them can go; empty where they can
  bool returned = false;                          ///< they are what the function gives back

  /// The layer that all of it lies in, or null.
  LayerOp layer() const;
};

class ChannelGroups {
public:
  explicit ChannelGroups(func::FuncOp function);
  ~ChannelGroups();

  /// The group of a dimension of an activation; null for dimensions that are not static.
  ChannelGroup *of(Value value, unsigned dimension) const;

private:
  class Builder;
  std::vector<std::unique_ptr<ChannelGroup>> groups;
  std::map<std::pair<void *, unsigned>, ChannelGroup *> byDimension;
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_CHANNELS_H
