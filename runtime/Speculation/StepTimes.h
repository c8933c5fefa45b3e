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

  /// Whether enough plain steps were measured to compare with; until then costs
  /// are what is hoped for.
  bool known() const;
  double plain() const { return single; }
  /// Of the program that takes `nodes` nodes, in plain steps.
  double cost(uint32_t nodes) const;
  /// Nodes of the largest tree that should be tried next: what wide steps cost
  /// is learned from narrower ones first.
  uint32_t reach() const;

private:
  struct Width {
    uint32_t width;
    double seconds; ///< 0: not measured
    unsigned steps;
  };
  static void blend(double &value, double seen);
  /// In plain steps; 0 where it was not measured.
  double ratio(const Width &width) const;

  std::vector<Width> costs;
  double single = 0;
  unsigned plainSteps = 0;
};

} // namespace sprig
