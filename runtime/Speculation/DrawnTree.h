//===- DrawnTree.h - a tree whose guesses a draft drew
//----------------------------===//
#pragma once

#include "runtime/Session/Guesses.h"
#include "runtime/Speculation/Acceptance.h"
#include "runtime/Speculation/DraftTree.h"

namespace sprig {

/// Numbers for draws that are the same whenever seed and place are.
class PlacedUniform final : public Uniform {
public:
  PlacedUniform(uint64_t seed, uint64_t place);
  double next() override;

private:
  uint64_t state;
};

/// Nodes that were drawn, each node's children without replacement, and what
/// they were drawn from, as a step over a drawn tree takes it
/// (Session::stepTree, format/Guesses.h). What it looks like is settled before
/// anything is drawn: `branches` children a level, of which the first has
/// children again. (A choice of what was drawn would not keep the
/// distribution.)
class DrawnTree {
public:
  /// Begins with the last token of the sequence.
  void reset(uint32_t token);
  /// Children of the first child that was drawn last, from `row` at
  /// `temperature`, as many as it has of the `branches` wanted. False where it
  /// has none, or the tree is full.
  bool grow(const GuessRow &row, float temperature, uint32_t branches,
            Uniform &uniform);

  const DraftTree::Cut &cut() const { return nodes; }
  const uint32_t *rows() const { return words.data(); }
  /// The first child that was drawn last, and how likely it was.
  uint32_t last() const { return nodes.tokens[at]; }
  float likely() const { return lastLikely; }

private:
  DraftTree::Cut nodes;
  std::array<uint32_t, format::kMostNodes * format::kGuessWords> words;
  uint32_t at = 0; ///< the node that grows
  float lastLikely = 1;
};

} // namespace sprig
