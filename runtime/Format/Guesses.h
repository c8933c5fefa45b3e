// What drafts say, behind the step block in the control buffer of a target that has drafts. A row is kGuesses token ids,
// then as many f32.
#ifndef SPRIG_RUNTIME_FORMAT_GUESSES_H
#define SPRIG_RUNTIME_FORMAT_GUESSES_H

#include "runtime/Format/Control.h"

namespace sprig::format {

/// Guesses of a row, the likeliest first; ids of 0xffffffff where there are fewer.
constexpr uint32_t kGuesses = 10;
constexpr uint32_t kGuessWords = 2 * kGuesses;
constexpr uint32_t kNoGuess = 0xffffffff;
/// A `draft` of width 1 leaves the row control.Steps - 1 (modulo the rows), so that several can be submitted and read
/// later; a wider one the row of each node. The numbers are the natural logarithms of the probabilities at
/// temperature 1, after the repeat penalty where a token was drawn.
constexpr uint32_t kGuessRows = kMostNodes;
/// For a `verify` with control.Rounds the host writes a row for each node: what its children were drawn from, and how
/// likely each was.
constexpr uint64_t kGuessOffset = 4 * uint64_t(ControlWords);
constexpr uint64_t kGuessBytes = 4 * uint64_t(kGuessWords) * kGuessRows;

} // namespace sprig::format

#endif // SPRIG_RUNTIME_FORMAT_GUESSES_H
