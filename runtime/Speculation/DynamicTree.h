//===- DynamicTree.h - rules by which a draft's tree grows
//------------------------===//
#pragma once

#include "runtime/Session/Guesses.h"
#include "runtime/Speculation/DraftTree.h"
#include "runtime/Support/Status.h"

#include <span>
#include <vector>

namespace sprig {

/// A draft that knows a distribution at each node: a model, or heads of one.
class Guesser {
public:
  virtual ~Guesser() = default;
  /// For each of `nodes`, all on one level of `tree`, what may follow it. One
  /// step of a draft answers for the whole level.
  virtual Status guesses(const DraftTree &tree, std::span<const uint32_t> nodes,
                         std::span<GuessRow> out) = 0;
};

/// Clover-2 (arXiv 2408.00264): level by level, of each node the shortest
/// prefix of its guesses that sums to `topP`, without those less likely than
/// `leastShare` of the first; of all these the likeliest paths, as long as the
/// budget lasts.
struct CloverRule {
  uint32_t budget = 16; ///< nodes after the root
  uint32_t depth = format::kMostNodes;
  float topP = 0.8f, leastShare = 0.25f;
  /// Nodes of each level at most; levels past its end have no limit.
  std::vector<uint32_t> levels;
};

/// EAGLE-2 (arXiv 2406.16858): on each level the `width` likeliest paths grow
/// by `width` guesses each. All are kept; `tree.rank` and `tree.cut` then take
/// the likeliest, the shallow ones first among equals.
struct EagleRule {
  uint32_t width = 8, depth = 5;
};

/// Grows trees by these rules; allocates nothing after it was made.
class TreeGrower {
public:
  TreeGrower();

  Status clover(DraftTree &tree, Guesser &guesser, const CloverRule &rule);
  Status eagle(DraftTree &tree, Guesser &guesser, const EagleRule &rule);

  /// Nodes that grow on one level at most: what a level says is then read in
  /// less than 1 KB.
  static constexpr uint32_t kWidest = 12;

private:
  struct Candidate {
    uint32_t parent; ///< with EAGLE-2's rule the node itself: it was added
    uint32_t token;
    float probability, joint;
    uint32_t order;
  };

  void begin();
  /// Asks for the rows of the frontier.
  Status ask(const DraftTree &tree, Guesser &guesser);
  void add(uint32_t parent, const GuessRow &row, uint32_t guess, float joint);
  /// The likeliest `count`, those that came first among equals.
  void keepLikeliest(size_t count);

  std::vector<uint32_t> frontier;
  std::vector<float> joints; ///< of the frontier
  std::vector<GuessRow> rows;
  std::vector<Candidate> candidates;
};

} // namespace sprig
