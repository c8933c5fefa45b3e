#include "lib/Reference/Math/Attention.h"

#include "lib/Reference/Math/Products.h"
#include "lib/Reference/Math/Workers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mlir::llm::reference {
namespace {

/// One head, queries [first, first + rows).
template <typename F> class Tile {
public:
  Tile(const AttentionInputs<F> &in, size_t head, size_t first, size_t rows)
      : in(in), head(head), group(head / (in.H / in.G)), first(first), rows(rows), kernels(productKernels<F>()) {}

  void run(F *y) {
    findRange();
    for (size_t r = 0; r < rows; ++r)
      std::fill_n(y + ((first + r) * in.H + head) * in.EV, in.EV, F(0));
    if (begin == end)
      return;
    const size_t keys = end - begin;
    scores.resize(rows * keys);
    kernels.timesTransposed(in.queries + (first * in.H + head) * in.E, in.H * in.E,
                            in.keys + (begin * in.G + group) * in.E, in.G * in.E, scores.data(), keys, rows, keys,
                            in.E);
    if (in.weightBlock)
      findScales();
    for (size_t r = 0; r < rows; ++r) {
      normalise(first + r, scores.data() + r * keys);
      if (in.weightBlock)
        roundWeights(first + r, scores.data() + r * keys);
    }
    const F *values = in.values + (begin * in.G + group) * in.valueStride;
    const size_t ldv = in.G * in.valueStride;
    F *out = y + (first * in.H + head) * in.EV;
    if (finite(values, ldv)) {
      kernels.times(scores.data(), keys, values, ldv, out, in.H * in.EV, rows, in.EV, keys);
      return;
    }
    // 0 · NaN is NaN: where something behind a hidden key is not a number, go
    // key by key.
    for (size_t r = 0; r < rows; ++r)
      for (size_t s = 0; s < keys; ++s)
        if (in.visible[(first + r) * in.S + begin + s])
          for (size_t e = 0; e < in.EV; ++e)
            out[r * in.H * in.EV + e] += scores[r * keys + s] * values[s * ldv + e];
  }

private:
  /// The keys that any of the rows sees lie in [begin, end).
  void findRange() {
    begin = in.S, end = 0;
    for (size_t t = first; t < first + rows; ++t) {
      const uint8_t *row = in.visible + t * in.S;
      size_t low = 0, high = in.S;
      while (low < begin && !row[low])
        ++low;
      while (high > end && !row[high - 1])
        --high;
      begin = std::min(begin, low), end = std::max(end, high);
    }
    begin = std::min(begin, end);
  }

  /// Scores to probabilities, in place; hidden keys become zero.
  void normalise(size_t t, F *row) {
    const size_t keys = end - begin;
    const uint8_t *visible = in.visible + t * in.S + begin;
    const F hidden = -std::numeric_limits<F>::infinity();
    F top = hidden;
    for (size_t s = 0; s < keys; ++s) {
      if (!visible[s]) {
        row[s] = hidden;
        continue;
      }
      F score = row[s] * F(in.scale);
      if (in.softcap != 0)
        score = F(in.softcap) * std::tanh(score / F(in.softcap));
      if (!in.slopes.empty())
        score += in.slopes[head] * F(in.keyPositions[begin + s] - in.queryPositions[t]);
      row[s] = score;
      top = std::max(top, score);
    }
    if (top == hidden) {
      std::fill_n(row, keys, F(0)); // sees nothing
      return;
    }
    // The vector exponential of −∞ is a tiny number, not zero: far below the
    // last bit of the sum, but zero it below.
    const F factor = 1 / kernels.exponentials(row, ptrdiff_t(keys), top);
    for (size_t s = 0; s < keys; ++s)
      row[s] = visible[s] ? row[s] * factor : F(0);
  }

  /// The scales of the values, which are 127ths of their largest magnitude.
  void findScales() {
    scales.assign(end - begin, F(0));
    for (size_t s = 0; s < end - begin; ++s) {
      const F *value = in.values + ((begin + s) * in.G + group) * in.valueStride;
      for (size_t e = 0; e < in.EV; ++e)
        scales[s] = std::max(scales[s], std::abs(value[e]) / 127);
    }
  }

  /// Probabilities to what their codes mean, in place. Codes are of probabilities times scales of values.
  void roundWeights(size_t t, F *row) {
    const size_t keys = end - begin;
    const uint8_t *visible = in.visible + t * in.S + begin;
    const auto blockOf = [&](size_t s) { return size_t(in.keyPositions[begin + s]) / in.weightBlock; };
    greatest.clear();
    for (size_t s = 0; s < keys; ++s) {
      if (!visible[s])
        continue;
      if (greatest.size() <= blockOf(s))
        greatest.resize(blockOf(s) + 1, F(0));
      F &most = greatest[blockOf(s)];
      most = std::max(most, row[s] * scales[s]);
    }
    for (size_t s = 0; s < keys; ++s) {
      const F scale = visible[s] ? scales[s] : F(0), step = scale > 0 ? greatest[blockOf(s)] / 127 : F(0);
      row[s] = step > 0 ? std::floor(row[s] * scale / step + F(0.5)) * step / scale : F(0);
    }
  }

  bool finite(const F *values, size_t ldv) const {
    for (size_t s = 0; s < end - begin; ++s) {
      F sum = 0;
      for (size_t e = 0; e < in.EV; ++e)
        sum += values[s * ldv + e] * F(0);
      if (sum != 0) // NaN when a value is infinite or not a number
        return false;
    }
    return true;
  }

  const AttentionInputs<F> &in;
  const size_t head, group, first, rows;
  const ProductKernels<F> &kernels;
  size_t begin = 0, end = 0;
  std::vector<F> scores, scales, greatest;
};

} // namespace

template <typename F> void attention(Workers &workers, const AttentionInputs<F> &in, F *y) {
  constexpr size_t kRows = 64; // bounds the scores held at once, and the work
                               // wasted above the diagonal
  const size_t tiles = (in.T + kRows - 1) / kRows;
  workers.run(tiles * in.H, [&](size_t i) {
    const size_t first = i / in.H * kRows;
    Tile<F>(in, i % in.H, first, std::min(kRows, in.T - first)).run(y);
  });
}

template void attention<float>(Workers &, const AttentionInputs<float> &, float *);
template void attention<double>(Workers &, const AttentionInputs<double> &, double *);

} // namespace mlir::llm::reference
