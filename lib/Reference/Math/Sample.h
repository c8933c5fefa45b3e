// From logits to a token, as docs/sampling.md defines it, and the walk that
// verifies a tree of draft tokens.
#ifndef SPRIG_LIB_REFERENCE_MATH_SAMPLE_H
#define SPRIG_LIB_REFERENCE_MATH_SAMPLE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlir::llm::reference {

struct SampleParameters {
  float temperature = 0; ///< <= 0: greedy
  uint32_t topK = 0;     ///< 0: off
  float topP = 1;        ///< >= 1: off
  float minP = 0;        ///< 0: off
  float repeatPenalty = 1;
  uint32_t repeatLastN = 64;
  uint32_t seedLow = 0, seedHigh = 0;
};

/// Draws the token at the absolute `position` from one row of logits. `history`
/// ends with the token before it; only its last `repeatLastN` ids are looked
/// at.
template <typename F>
int32_t sample(std::span<const F> logits, const SampleParameters &parameters, std::span<const int32_t> history,
               uint32_t position);

struct TreeVerdict {
  std::vector<int32_t> accepted; ///< the nodes walked through, node 0 first
  int32_t bonus = 0;             ///< the token drawn at the last node of the path
};

/// Walks a tree of T nodes (`parents[i] < i`, node 0 is the root) whose logits
/// are rows of `logits[T, V]`. `history` ends with the token before node 0;
/// `position` is that of node 0.
template <typename F>
TreeVerdict verifyTree(std::span<const F> logits, size_t V, std::span<const int32_t> tokens,
                       std::span<const int32_t> parents, const SampleParameters &parameters,
                       std::span<const int32_t> history, uint32_t position);

/// Row i: bit j (low word first) where node j is i or an ancestor of i. `mask`
/// holds two words a node; -1 is no parent.
void treeMask(std::span<const int32_t> parents, std::span<int32_t> mask, std::span<int32_t> depths);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_SAMPLE_H
