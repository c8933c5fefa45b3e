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
}

TEST(StepPlan, ShortFirstPromptsTakeWhatIsMade) {
  auto narrow = [](uint32_t tokens, const PipelineCost &more, double &lost) {
    return takesNarrow(tokens * 4.5, costOf({{tokens, tokens}}), more, lost);
  };
  double lost = 0;
  PipelineCost fresh, known;
  for (int i = 0; i < 5; ++i) {
    fresh.add(100 << 10, false);
    known.add(100 << 10, true);
  }
  EXPECT_FALSE(narrow(16, known, lost));
  EXPECT_TRUE(narrow(5, known, lost)) << "loading pipelines takes longer";
  EXPECT_EQ(lost, 0);
  EXPECT_FALSE(narrow(512, fresh, lost)) << "a long prompt pays for them";
  // Others pay together, those that lose more sooner.
  auto starts = [&](uint32_t tokens) {
    int count = 0;
    for (lost = 0; narrow(tokens, fresh, lost); ++count)
      EXPECT_GT(lost, 0);
    EXPECT_EQ(lost, 0);
    return count;
  };
  EXPECT_GE(starts(64), 1);
  EXPECT_LT(starts(64), starts(32));
  EXPECT_LT(starts(32), starts(16));
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
