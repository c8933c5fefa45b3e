//===- DraftTree.h - guesses of several drafts in one tree
//----------------------===//
#pragma once

#include "runtime/Format/Control.h"

#include <array>
#include <cstdint>

namespace sprig {

/// A tree of guesses behind the last token, each with the probability that it
/// is right if its parent is. Several drafts add to one tree: equal guesses are
/// one node. Holds more nodes than a step takes, so that the likeliest can be
/// chosen; allocates nothing.
class DraftTree {
public:
  static constexpr uint32_t kMost = 640;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Node {
    uint32_t token;
    uint32_t parent; ///< before the node; kNone at the root
    uint32_t depth;
    float probability; ///< given its parent
    float joint;       ///< of the whole path, see `rank`
  };

  /// What a step is given, and no more: parents before children.
  struct Cut {
    std::array<uint32_t, format::kMostNodes> tokens;
    std::array<int32_t, format::kMostNodes> parents;
    uint32_t count = 0;
  };

  /// Begins with the last token of the sequence. Guesses deeper than `depth`
  /// are not taken.
  void reset(uint32_t token, uint32_t depth);
  /// The child of `parent` that guesses `token`, made where it is new;
  /// otherwise the higher probability stays. kNone where it is too deep or the
  /// tree is full.
  uint32_t add(uint32_t parent, uint32_t token, float probability);

  uint32_t size() const { return count; }
  const Node &node(uint32_t index) const { return nodes[index]; }

  /// Joint probabilities, and the nodes by them. To be called after the last
  /// `add`.
  void rank();
  /// Tokens that a step of the `wanted` likeliest nodes is expected to bring:
  /// one, and one for each node that is right. At most `size()` nodes.
  float expected(uint32_t wanted) const { return sums[wanted]; }
  /// The likeliest nodes, the likeliest path first, so that what is accepted
  /// mostly lies where it belongs already.
  void cut(uint32_t wanted, Cut &out) const;
  /// Turns the tree into its likeliest path: other nodes go.
  void keepChain();

private:
  std::array<Node, kMost> nodes;
  std::array<uint32_t, kMost> order;   ///< by joint probability
  std::array<float, kMost + 1> sums{}; ///< of it, over the first
  uint32_t count = 0, deepest = 0;
};

} // namespace sprig
