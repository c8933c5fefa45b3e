//===- ChainRecord.h - how often a chain of guesses was right, and what it cost
//----------===//
#pragma once

#include "runtime/Speculation/StepTimes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sprig {

/// The record of a draft that guesses one token after another, each with a step
/// of the device. How long its chain is follows from how often it was right,
/// and from what a guess and a step cost. Allocates nothing after `reserve`.
class ChainRecord {
public:
  void reserve(size_t guesses) { guessed.reserve(guesses); }

  /// The sequence has a new last token, or with `sampled` false is another.
  void follow(const std::vector<uint32_t> &tokens, bool sampled);
  /// Guesses behind a sequence of `length` tokens follow.
  void begin(size_t length);
  /// `said`: how likely the draft called it, where it says so.
  void add(uint32_t token, float said = -1) { guessed.push_back({token, said}); }
  size_t size() const { return guessed.size(); }
  /// What one of them took.
  void took(double seconds);

  /// How often a guess is right whose predecessors were.
  double agreement() const;
  /// How often one is that the draft called so likely; `prior`, before any was
  /// seen.
  float likely(float said, float prior) const;
  /// How many guesses, less than `most`, bring most tokens a second; 0 where
  /// none bring more than `least` times plain steps.
  uint32_t worth(const StepTimes &times, uint32_t most, double least) const;

private:
  struct Guessed {
    uint32_t token;
    float said;
  };
  struct Seen {
    double right = 0, all = 0; ///< fading
    void fade(double by) { right *= by, all *= by; }
  };
  static constexpr size_t kKinds = 8; ///< by how likely they were called
  static size_t kindOf(float said);

  std::vector<Guessed> guessed; ///< last
  size_t guessedAt = 0;         ///< length of the sequence behind which
  size_t checked = 0;           ///< guesses that are known to be right or not
  Seen seen, kinds[kKinds];
  double seconds = 0; ///< of one guess
};

} // namespace sprig
