//===- Draft.h - what guesses the next tokens
//-------------------------------------===//
#pragma once

#include "runtime/Speculation/DraftTree.h"
#include "runtime/Speculation/StepTimes.h"
#include "runtime/Support/Status.h"

#include <string_view>
#include <vector>

namespace sprig {

/// Guesses what follows a sequence. Whatever it says, the tokens given out are
/// those of plain decoding: a guess only decides what is computed with them.
class Draft {
public:
  virtual ~Draft() = default;
  virtual std::string_view name() const = 0;
  /// Whether guesses take steps of a device: then they are asked for only where
  /// `worth` says so, and never while steps are under way.
  virtual bool costly() const { return false; }
  /// Of a costly draft: how many guesses, less than `most`, bring most tokens a
  /// second with what they cost themselves; 0 where none bring more than `rate`
  /// times plain steps.
  virtual uint32_t worth(const StepTimes &times, uint32_t most, double rate) {
    (void)times, (void)rate;
    return most - 1;
  }
  /// Room for a sequence of `tokens` tokens.
  virtual void reserve(size_t tokens) { (void)tokens; }
  /// Makes what its steps need that can be made ahead.
  virtual Status prepare() { return {}; }
  /// The sequence is now `tokens`: mostly the one before and a few more.
  /// `sampled`: the new ones are the model's own, not a prompt's.
  virtual Status follow(const std::vector<uint32_t> &tokens, bool sampled) = 0;
  /// Adds guesses behind the root of `tree`, which is the last token, so that
  /// it has about `nodes` nodes.
  virtual Status propose(DraftTree &tree, uint32_t nodes) = 0;
};

} // namespace sprig
