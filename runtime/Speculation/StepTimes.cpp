#include "runtime/Speculation/StepTimes.h"

#include <algorithm>

namespace sprig {
namespace {

/// Weight of the newest time. What disturbs a step makes it longer, so a shorter
/// one says more.
constexpr double kShorter = 0.5, kLonger = 0.1;
/// A step that took this much longer than usual was disturbed.
constexpr double kDisturbed = 2;
/// What another node is taken to cost before any tree was measured, in plain
/// steps: hopeful, so that a tree is tried where one could pay.
constexpr double kNode = 0.12;
/// Plain steps before they are believed; the first one touches memory that was
/// never touched, and does not count.
constexpr unsigned kEnough = 3;
/// The first width that is tried is not above this; each next one not above
/// twice what was measured.
constexpr uint32_t kFirstWidth = 4;
/// How far a measured cost sinks with each plain step: it will be tried again
/// after some hundred, should it have been a bad moment.
constexpr double kSink = 0.001;

} // namespace

StepTimes::StepTimes(const std::vector<uint32_t> &widths) {
  for (uint32_t width : widths)
    costs.push_back({width, 0, 0});
}

void StepTimes::blend(double &value, double seen) {
  const double weight = seen < value ? kShorter : kLonger;
  value += weight * (std::min(seen, kDisturbed * value) - value);
}

void StepTimes::plain(double seconds) {
  if (++plainSteps <= 2)
    single = seconds;
  else
    blend(single, seconds);
  for (Width &width : costs)
    width.ratio -= kSink * std::max(0.0, width.ratio - 1);
}

void StepTimes::tree(uint32_t measured, double seconds) {
  if (!known())
    return;
  for (Width &width : costs)
    if (width.width == measured) {
      const double ratio = seconds / single;
      ++width.steps;
      if (width.steps == 1 || (width.steps == 2 && ratio < width.ratio))
        width.ratio = ratio;
      else
        blend(width.ratio, ratio);
    }
}

bool StepTimes::known() const { return plainSteps >= kEnough; }

uint32_t StepTimes::reach() const {
  uint32_t most = kFirstWidth;
  for (const Width &width : costs)
    if (width.steps > 0)
      most = std::max(most, 2 * width.width);
  return most;
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
