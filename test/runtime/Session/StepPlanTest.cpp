#include "runtime/Session/StepPlan.h"

#include <gtest/gtest.h>

using namespace sprig;

namespace {

std::vector<std::pair<uint32_t, uint32_t>>
plan(uint32_t tokens, std::vector<uint32_t> inner, std::vector<uint32_t> last) {
  std::vector<std::pair<uint32_t, uint32_t>> steps;
  for (const PlannedStep &step : planSteps(tokens, inner, last))
    steps.push_back({step.width, step.count});
  return steps;
}

using Steps = std::vector<std::pair<uint32_t, uint32_t>>;
const std::vector<uint32_t> kWidths = {1, 4, 16, 64};

TEST(StepPlan, TakesTheCheapestCover) {
  EXPECT_EQ(plan(1, kWidths, kWidths), (Steps{{1, 1}}));
  EXPECT_EQ(plan(3, kWidths, kWidths), (Steps{{4, 3}}));
  EXPECT_EQ(plan(15, kWidths, kWidths), (Steps{{16, 15}}));
  EXPECT_EQ(plan(16, kWidths, kWidths), (Steps{{16, 16}}));
  EXPECT_EQ(plan(17, kWidths, kWidths), (Steps{{16, 16}, {1, 1}}));
  EXPECT_EQ(plan(64, kWidths, kWidths), (Steps{{64, 64}}));
  EXPECT_EQ(plan(130, kWidths, kWidths), (Steps{{64, 64}, {64, 64}, {4, 2}}));
}

TEST(StepPlan, MakesDoWithTheWidthsThereAre) {
  EXPECT_EQ(plan(3, {}, {1}), (Steps{{1, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(plan(6, {4}, {1}), (Steps{{4, 4}, {1, 1}, {1, 1}}));
  EXPECT_EQ(plan(3, {8}, {1, 2}), (Steps{{2, 2}, {1, 1}}));
}

TEST(StepPlan, CostsAddUp) {
  EXPECT_EQ(costOf({}), 0);
  EXPECT_EQ(costOf({{1, 1}}), 4.5);
  EXPECT_EQ(costOf({{8, 8}, {8, 5}, {1, 1}}), 2 * costOf({{8, 8}}) + 4.5);
  // Five tokens are one wider step where that is made, and steps of one token
  // where a single pipeline had to be made first.
  EXPECT_LT(costOf({{6, 5}}), 5 * 4.5);
  EXPECT_GT(costOf({{6, 5}}) + kPipelineCost, 5 * 4.5);
}

TEST(StepPlan, CoversEveryLength) {
  for (uint32_t tokens = 1; tokens < 300; ++tokens) {
    uint32_t sum = 0;
    std::vector<PlannedStep> steps = planSteps(tokens, kWidths, kWidths);
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_LE(steps[i].count, steps[i].width);
      if (i + 1 < steps.size()) {
        EXPECT_EQ(steps[i].count, steps[i].width);
      }
      sum += steps[i].count;
    }
    EXPECT_EQ(sum, tokens);
  }
}

} // namespace
