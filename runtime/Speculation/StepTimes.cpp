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
constexpr unsigned kEnough = 2;
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
    width.seconds -= kSink * std::max(0.0, width.seconds - single);
}

void StepTimes::tree(uint32_t measured, double seconds) {
  for (Width &width : costs)
    if (width.width == measured) {
      ++width.steps;
      if (width.steps == 1 || (width.steps == 2 && seconds < width.seconds))
        width.seconds = seconds;
      else
        blend(width.seconds, seconds);
    }
}

double StepTimes::ratio(const Width &width) const {
  return known() ? width.seconds / single : 0;
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
  if (const double measured = ratio(costs[at]); measured > 0)
    return measured;
  double belowWidth = 1, below = 1;
  for (size_t i = 0; i < at; ++i)
    if (ratio(costs[i]) > 0)
      belowWidth = costs[i].width, below = ratio(costs[i]);
  double slope = belowWidth > 1 ? (below - 1) / (belowWidth - 1) : kNode;
  for (size_t i = costs.size(); i-- > at + 1;)
    if (ratio(costs[i]) > 0)
      slope = (ratio(costs[i]) - below) / (costs[i].width - belowWidth);
  return below + std::max(0.0, slope) * (costs[at].width - belowWidth);
}

} // namespace sprig
