#include "tools/Tune/Search.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <set>

namespace mlir::llm {

double middle(std::vector<double> values) {
  llvm::sort(values);
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

bool faster(const std::vector<double> &ratios, double gain) {
  auto slow = llvm::count_if(ratios, [](double ratio) { return ratio >= 1; });
  return !ratios.empty() && middle(ratios) <= 1 - gain &&
         size_t(slow) * 5 <= ratios.size();
}

std::vector<ScheduleValues> classesOf(const ScheduleSpace &space,
                                      const ScheduleValues &standard,
                                      const ChangesBits &changesBits) {
  std::vector<ScheduleValues> classes = {standard};
  for (const auto &[choice, values] : space) {
    if (!changesBits(choice))
      continue;
    for (size_t i = 0, known = classes.size(); i < known; ++i)
      for (const ScheduleValue &value : values)
        if (classes[i][choice] != value) {
          classes.push_back(classes[i]);
          classes.back()[choice] = value;
        }
  }
  return classes;
}

std::optional<TileResult> searchTile(const ScheduleSpace &space,
                                     const ScheduleValues &start,
                                     const ScheduleValues &standard,
                                     const ChangesBits &changesBits,
                                     ScheduleRace &race,
                                     const SearchOptions &options) {
  bool sameClass = llvm::all_of(space, [&](const auto &axis) {
    auto ours = start.find(axis.first), theirs = standard.find(axis.first);
    return !changesBits(axis.first) ||
           (ours != start.end() && theirs != standard.end() &&
            ours->second == theirs->second);
  });
  ScheduleValues best = start;
  bool runs = race.legal(best) && (best == standard ||
                                   !race.race(standard, best, 1).empty());
  if (!runs) {
    if (!sameClass)
      return std::nullopt;
    best = standard; // a winner of elsewhere that does not run for this tile
  }
  std::set<ScheduleValues> seen = {best};
  for (unsigned pass = 0, moved = 1; moved && pass < options.passes; ++pass) {
    moved = 0;
    for (const auto &[choice, values] : space) {
      if (changesBits(choice))
        continue;
      for (const ScheduleValue &value : values) {
        ScheduleValues next = best;
        next[choice] = value;
        if (!seen.insert(next).second || !race.legal(next))
          continue;
        // A glance first; only what looks faster is looked at again.
        if (faster(race.race(best, next, 1), options.gain) &&
            faster(race.race(best, next, 3), options.gain)) {
          best = next;
          moved = 1;
        }
      }
    }
  }
  if (best != standard) {
    std::vector<double> ratios = race.race(standard, best, options.rounds);
    if (faster(ratios, options.gain))
      return TileResult{best, middle(ratios)};
  }
  return sameClass ? std::optional(TileResult{standard, 1}) : std::nullopt;
}

size_t bestClass(
    const std::vector<std::vector<std::optional<TileResult>>> &classes) {
  size_t best = 0;
  double least = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    // The logarithm of a weighted geometric mean.
    double cost = 0;
    bool whole = !classes[i].empty();
    for (const auto &[tile, result] : llvm::enumerate(classes[i])) {
      whole = whole && result && result->ratio <= 1;
      if (!whole)
        break;
      double weight = tile == 0 ? double(std::max<size_t>(
                                      classes[i].size() - 1, 1))
                                : 1.0;
      cost += weight * std::log(result->ratio);
    }
    if (whole && (i == 0 || cost < least)) {
      best = i;
      least = cost;
    }
  }
  return best;
}

} // namespace mlir::llm
