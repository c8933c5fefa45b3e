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

} // namespace sprig
