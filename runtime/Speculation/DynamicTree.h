//===- DynamicTree.h - rules by which a draft's tree grows
//------------------------===//
#pragma once

#include "runtime/Speculation/DraftTree.h"
#include "runtime/Support/Status.h"

#include <vector>

namespace sprig {

struct Guess {
  uint32_t token;
  float probability; ///< given the node that it follows
};

/// A draft that knows a distribution at each node: a model, or heads of one.
class Guesser {
public:
  virtual ~Guesser() = default;
  /// For each of `nodes`, all on one level of `tree`, what may follow it, the
  /// likeliest first. One step of a draft model answers for the whole level.
  virtual Status guesses(const DraftTree &tree,
                         const std::vector<uint32_t> &nodes,
                         std::vector<std::vector<Guess>> &out) = 0;
};

/// Clover-2 (arXiv 2408.00264): level by level, of each node the shortest
/// prefix of its guesses that sums to `topP`, without those less likely than
/// `leastShare` of the first; of all these the likeliest paths, as long as the
/// budget lasts.
struct CloverRule {
  uint32_t budget = 16; ///< nodes after the root
  float topP = 0.8f, leastShare = 0.25f;
  /// Nodes of each level at most; levels past its end have no limit.
  std::vector<uint32_t> levels;
};
Status growClover(DraftTree &tree, Guesser &guesser, const CloverRule &rule);

/// EAGLE-2 (arXiv 2406.16858): on each level the `width` likeliest paths grow
/// by `width` guesses each. All are kept; `tree.rank` and `tree.cut` then take
/// the likeliest, the shallow ones first among equals.
struct EagleRule {
  uint32_t width = 8, depth = 5;
};
Status growEagle(DraftTree &tree, Guesser &guesser, const EagleRule &rule);

} // namespace sprig
