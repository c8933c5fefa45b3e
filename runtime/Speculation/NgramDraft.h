//===- NgramDraft.h - what followed the same words before
//-------------------------===//
#pragma once

#include "runtime/Speculation/Draft.h"
#include "runtime/Speculation/SuffixAutomaton.h"

namespace sprig {

/// Guesses from the sequence itself: the continuations of all earlier places
/// that ended like it, merged into one tree. Costs no model and no training;
/// pays where text is copied, listed or edited.
///
/// The probability of a guess is that of prediction by partial matching: the
/// longest context first, each shorter one with what the longer ones leave. How
/// often a context of some length is right is learned from the text itself.
class NgramDraft final : public Draft {
public:
  NgramDraft();

  std::string_view name() const override { return "ngram"; }
  void reserve(size_t tokens) override;
  Status follow(const std::vector<uint32_t> &tokens, bool sampled) override;
  Status propose(DraftTree &tree, uint32_t nodes) override;

  /// How often one of the continuations of a context of `length` tokens is
  /// right; `shorter`: where a longer context was wrong.
  float confidence(uint32_t length, bool shorter) const;

private:
  static constexpr unsigned kBuckets = 8;
  struct Confidence {
    float right, seen;
  };
  /// A place in the automaton: the state, and how long the context is.
  struct Place {
    uint32_t state, length;
  };

  static unsigned bucketOf(uint32_t length);
  void learn(uint32_t token);
  void expand(DraftTree &tree, uint32_t node, Place place);
  Place after(Place place, uint32_t token) const;

  SuffixAutomaton seen;
  std::vector<uint32_t> sequence;
  Confidence confidences[2][kBuckets];
  /// Of the tree that is being proposed: where a node is, what is open.
  Place places[DraftTree::kMost];
  float joints[DraftTree::kMost];
};

} // namespace sprig
