#include "runtime/Speculation/StepTimes.h"

#include <algorithm>

namespace sprig {
namespace {

/// Weight of the newest time.
constexpr double kNewest = 0.2;
/// A step that took this much longer than usual was disturbed.
constexpr double kDisturbed = 2;
/// What another node is taken to cost before any tree was measured, in plain
/// steps: hopeful, so that a tree is tried where one could pay.
constexpr double kNode = 0.12;
/// How far a measured cost sinks with each plain step: it will be tried again
/// after some hundred, should it have been a bad moment.
constexpr double kSink = 0.001;

} // namespace

StepTimes::StepTimes(const std::vector<uint32_t> &widths) {
  for (uint32_t width : widths)
    costs.push_back({width, 0, false});
}

void StepTimes::blend(double &value, double seen) {
  if (value == 0)
    value = seen;
  else
    value += kNewest * (std::min(seen, kDisturbed * value) - value);
}

void StepTimes::plain(double seconds) {
  blend(single, seconds);
  for (Width &width : costs)
    width.ratio -= kSink * std::max(0.0, width.ratio - 1);
}

void StepTimes::tree(uint32_t measured, double seconds) {
  if (!known())
    return;
  for (Width &width : costs)
    if (width.width == measured) {
      // The first one touches memory that was never touched.
      if (width.warm)
        blend(width.ratio, seconds / single);
      width.warm = true;
    }
}

double StepTimes::cost(uint32_t nodes) const {
  // The width that runs, and the measured ones around it.
  size_t at = 0;
  while (at + 1 < costs.size() && costs[at].width < nodes)
    ++at;
  if (costs[at].ratio > 0)
    return costs[at].ratio;
  double belowWidth = 1, below = 1;
  for (size_t i = 0; i < at; ++i)
    if (costs[i].ratio > 0)
      belowWidth = costs[i].width, below = costs[i].ratio;
  double slope = belowWidth > 1 ? (below - 1) / (belowWidth - 1) : kNode;
  for (size_t i = costs.size(); i-- > at + 1;)
    if (costs[i].ratio > 0)
      slope = (costs[i].ratio - below) / (costs[i].width - belowWidth);
  return below + std::max(0.0, slope) * (costs[at].width - belowWidth);
}

} // namespace sprig
