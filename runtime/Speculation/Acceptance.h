//===- Acceptance.h - which guesses stay, where drafts are sampled
//----------------===//
//
// The default rule needs none of this: trees are fixed before anything is
// drawn, one token is drawn at each node, and the walk follows it. These rules
// are for drafts that draw their guesses, on the host and over whole
// distributions; test/runtime/Speculation/AcceptanceTest.cpp shows by χ² what
// they keep and what they do not.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace sprig {

/// Uniform numbers in [0, 1).
class Uniform {
public:
  virtual ~Uniform() = default;
  virtual double next() = 0;
};

/// A place in [0, size) drawn by weights that sum to anything above 0.
uint32_t drawFrom(const double *weights, size_t size, Uniform &uniform);

/// What became of the children of a node.
struct Verdict {
  uint32_t token;  ///< that follows
  int32_t child;   ///< index of the child that has it; -1: it was drawn anew
};

/// How the children of a node were drawn from the draft's distribution.
enum class Draws {
  Independent, ///< with replacement (SpecInfer, arXiv 2305.09781)
  Distinct     ///< without (Sequoia, arXiv 2402.12374)
};

/// The multi-round rule: child x stays if r < p(x) / q(x), otherwise p becomes
/// norm(max(p - q, 0)), and with distinct draws q(x) = 0 and q is normalised
/// again. What follows is distributed as `target`, whatever `draft` is. Both
/// are of `size` numbers that sum to 1, and are written over.
Verdict acceptSampled(double *target, double *draft, size_t size,
                      const uint32_t *children, size_t count, Draws draws,
                      Uniform &uniform);

/// LOSSY: typical acceptance (Medusa, arXiv 2401.10774, section 2.3.1). The
/// first child with p(x) > min(epsilon, delta · exp(-entropy of p)) stays;
/// where none does, the token is drawn from p. Faster at high temperatures; the
/// text is not that of the model.
Verdict acceptTypical(const double *target, size_t size,
                      const uint32_t *children, size_t count, double epsilon,
                      double delta, Uniform &uniform);

} // namespace sprig
