//===- StepTimes.h - what a step of each width costs on this device
//---------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace sprig {

/// Seconds of plain steps and of steps over trees, as measured while they run.
/// Widths that were not tried yet are estimated from those that were.
class StepTimes {
public:
  /// `widths` rise and are above 1.
  explicit StepTimes(const std::vector<uint32_t> &widths);

  /// A plain step took `seconds`.
  void plain(double seconds);
  /// A tree step of one of the widths took `seconds`.
  void tree(uint32_t width, double seconds);

  /// Whether a plain step was measured at all.
  bool known() const { return single > 0; }
  double plain() const { return single; }
  /// Of the program that takes `nodes` nodes, in plain steps.
  double cost(uint32_t nodes) const;

private:
  struct Width {
    uint32_t width;
    double ratio; ///< to a plain step; 0: not measured
    bool warm;    ///< ran before
  };
  static void blend(double &value, double seen);

  std::vector<Width> costs;
  double single = 0;
};

} // namespace sprig
