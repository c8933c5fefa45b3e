//===- StepPlan.h - which programs take a prompt
//-------------------------------===//
#pragma once

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

/// What making a pipeline that no cache knows takes in the same unit: as long
/// as about seven steps of one token, on lavapipe (100 ms and 15) as on GPUs.
inline constexpr double kPipelineCost = 30;
/// The same where a cache was found, which may know it or not.
inline constexpr double kCachedPipelineCost = 3;

} // namespace sprig
