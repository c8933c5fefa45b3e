// How weights are quantised: the numbers that a group can hold, and the grid of one group.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_SCHEME_H
#define SPRIG_TRANSFORMS_QUANTIZE_SCHEME_H

#include "dialects/LLM/LLM.h"
#include <vector>

namespace mlir::llm {

/// Even grids of groups along a row, the scale an f16:
/// symmetric `w = s * code`, else `w = s * (code - zero)` with an integer zero point.
struct WeightScheme {
  unsigned bits = 4;  ///< 2, 3, 4, 5, 6 or 8
  int64_t group = 64; ///< a multiple of 32; 0: a whole row. The last group of a row may be short
  bool symmetric = true;
  Sparsity sparsity = {}; ///< N:M of which are stored, with 4 or 8 bits; 0:0: all

  /// Says what does not fit, or is empty.
  std::string whyRefused() const;
  QuantizedType type(MLIRContext *context) const;
  int64_t groupOf(int64_t K) const { return group == 0 ? K : group; }
  int64_t groups(int64_t K) const { return (K + groupOf(K) - 1) / groupOf(K); }
  /// Smallest and largest stored code, as a number.
  float least() const { return symmetric ? -float(1 << (bits - 1)) : 0; }
  float most() const { return symmetric ? float((1 << (bits - 1)) - 1) : float((1 << bits) - 1); }
};

/// The grid of one group: what is stored, so that value() is the number that a device sees.
struct GroupGrid {
  float scale = 0, zero = 0;
  float least = 0, most = 0;

  float code(float w) const;
  float value(float code) const { return scale * (code - zero); }
  float round(float w) const { return value(code(w)); }
};

/// From the largest magnitude, or the range with zero in it, times `clip`.
GroupGrid rangeGrid(const WeightScheme &scheme, ArrayRef<float> w, float clip = 1);

/// The grid of least squared error among ranges clipped by up to a half, for symmetric codes of either sign of the
/// scale (the code range has one more number below zero). Never worse than rangeGrid. Errors are weighted where
/// `importance` has a number for each of `w`.
GroupGrid bestGrid(const WeightScheme &scheme, ArrayRef<float> w, ArrayRef<float> importance = {});

/// Of those grids the one that loses least of what the group adds to outputs: eᵀHe of the errors e, H being Σ xxᵀ of the
/// group's inputs, numbers `stride` apart from row to row. Those that look best by the diagonal of H are tried.
GroupGrid bestGridFor(const WeightScheme &scheme, ArrayRef<float> w, const float *moments, int64_t stride);

/// Which numbers of a weight `NxK` are kept: 1 or 0 for each. Empty: all.
using KeptNumbers = std::vector<uint8_t>;

/// A weight `NxK` in codes.
struct QuantizedRows {
  int64_t N = 0, K = 0;
  std::vector<int8_t> codes;        ///< [N, K], numbers of the code; unsigned ones as their bits
  std::vector<GroupGrid> grids;     ///< [N, groups]
  KeptNumbers kept = {};            ///< the codes of all others are those of zero

  bool keeps(int64_t n, int64_t k) const { return kept.empty() || kept[size_t(n * K + k)]; }
  /// Of numbers of row `n` from column `first` on those that are kept.
  std::vector<float> keptOf(ArrayRef<float> numbers, int64_t n, int64_t first) const {
    std::vector<float> list;
    for (auto [i, number] : llvm::enumerate(numbers))
      if (keeps(n, first + int64_t(i)))
        list.push_back(number);
    return list;
  }
  float value(const WeightScheme &scheme, int64_t n, int64_t k) const {
    if (!keeps(n, k))
      return 0;
    const GroupGrid &grid = grids[size_t(n * scheme.groups(K) + k / scheme.groupOf(K))];
    const int8_t code = codes[size_t(n * K + k)];
    return grid.value(scheme.symmetric ? float(code) : float(uint8_t(code)));
  }
};

/// Rounds one row of K numbers by the grids at `row` of `into`, which are made first: the best ones, or those of ranges,
/// of the numbers that `into` keeps.
void roundRow(const WeightScheme &scheme, ArrayRef<float> w, bool best, QuantizedRows &into, int64_t row,
              ArrayRef<float> importance = {});

/// The same with the grids of bestGridFor, for inputs of the second moments `gram` [K, K]; of a row of which only some
/// numbers are kept, with the best ones by its diagonal.
void roundRowFor(const WeightScheme &scheme, ArrayRef<float> w, ArrayRef<float> gram, QuantizedRows &into, int64_t row);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_SCHEME_H
