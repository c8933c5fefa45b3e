#include "runtime/Session/StepPlan.h"

#include <algorithm>

namespace sprig {
namespace {

/// A step reads all weights once for up to eight tokens, and computes for each
/// token. The ratio is that of devices on which eight tokens cost about three
/// of one; a step of its own costs a little more than wider steps.
double cost(uint32_t width) {
  return 0.5 + 3.0 * ((width + 7) / 8) + width;
}

/// The largest of `widths` that is smaller than `tokens`; 0 where none is.
uint32_t largestBelow(const std::vector<uint32_t> &widths, uint32_t tokens) {
  auto found = std::lower_bound(widths.begin(), widths.end(), tokens);
  return found == widths.begin() ? 0 : *std::prev(found);
}

/// The smallest of `widths` that holds `tokens`; 0 where none does.
uint32_t smallestFor(const std::vector<uint32_t> &widths, uint32_t tokens) {
  auto found = std::lower_bound(widths.begin(), widths.end(), tokens);
  return found == widths.end() ? 0 : *found;
}

} // namespace

std::vector<PlannedStep> planSteps(uint32_t tokens,
                                   const std::vector<uint32_t> &inner,
                                   const std::vector<uint32_t> &last) {
  const std::vector<uint32_t> &filled = inner.empty() ? last : inner;
  // The greedy chain: as many filled steps of the largest width below what is
  // left as it takes. It may be cut at any point where one step can finish.
  std::vector<PlannedStep> chain, best;
  double spent = 0, bestCost = 0;
  for (uint32_t left = tokens; left > 0;) {
    if (uint32_t width = smallestFor(last, left)) {
      double total = spent + cost(width);
      if (best.empty() || total < bestCost) {
        best = chain;
        best.push_back({width, left});
        bestCost = total;
      }
    }
    uint32_t width = largestBelow(filled, left);
    if (width == 0)
      width = largestBelow(last, left); // `inner` has no width so small
    if (width == 0)
      break;
    chain.push_back({width, width});
    spent += cost(width);
    left -= width;
  }
  return best;
}

double costOf(const std::vector<PlannedStep> &plan) {
  double sum = 0;
  for (const PlannedStep &step : plan)
    sum += cost(step.width);
  return sum;
}

bool takesNarrow(double narrow, double wide, const PipelineCost &more,
                 double &lost) {
  constexpr double kExpected = 4; ///< starts with such a prompt
  const double loss = narrow - wide - more.cached;
  if (loss <= 0)
    return true;
  if (more.fresh > 0 && lost + kExpected * loss < more.fresh) {
    lost += loss;
    return true;
  }
  if (more.fresh > 0)
    lost = 0;
  return false;
}

} // namespace sprig
