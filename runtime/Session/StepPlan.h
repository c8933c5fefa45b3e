//===- StepPlan.h - which programs take a prompt
//-------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sprig {

/// `count` tokens by the program of `width`, which is not smaller.
struct PlannedStep {
  uint32_t width = 0;
  uint32_t count = 0;
};

/// Covers `tokens` (at least 1) with steps. All but the last use a width of
/// `inner`, filled; the last uses one of `last`, padded where it is the
/// cheapest way: 17 tokens are 16 + 1, 15 are one step of 16. Both lists rise
/// and `last` is not empty; an empty `inner` means that every step is of
/// `last`.
std::vector<PlannedStep> planSteps(uint32_t tokens,
                                   const std::vector<uint32_t> &inner,
                                   const std::vector<uint32_t> &last);

/// What the steps take, in the unit that planSteps weighs them by: a step of
/// one token is 4.5.
double costOf(const std::vector<PlannedStep> &plan);

/// What the pipelines take, in the same unit, that are to be made first.
/// Compilers take time by the size of the code: a KiB of SPIR-V takes 6 ms on
/// lavapipe of Mesa 22 and 12 to 16 on that of Mesa 25, a step of one token 15
/// to 20.
struct PipelineCost {
  double fresh = 0;  ///< of kernels that no cache knows
  double cached = 0; ///< of kernels that one knows

  void add(size_t codeBytes, bool known) {
    known ? cached += 3 : fresh += 2.0 / 1024 * double(codeBytes);
  }
};

/// Whether a first prompt takes steps of one token, whose pipelines generation
/// needs anyway, rather than steps that cost `wide` and the pipelines `more`.
/// Each start alone would gain by that again and again, so what is lost to wide
/// steps is added up in `lost` from start to start, and at some time their
/// pipelines are made: sooner the longer prompts are, since the next prompt is
/// expected to be like this one.
bool takesNarrow(double narrow, double wide, const PipelineCost &more,
                 double &lost);

} // namespace sprig
