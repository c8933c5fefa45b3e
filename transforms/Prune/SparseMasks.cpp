#include "transforms/Prune/SparseMasks.h"

#include "transforms/Quantize/ColumnSweep.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

/// Marks the largest scores of each piece; of equal ones the first.
static void choose(const SparseRule &rule, ArrayRef<float> scores, MutableArrayRef<uint8_t> kept,
                   SmallVectorImpl<size_t> &order) {
  const size_t piece = rule.pattern.of ? rule.pattern.of : scores.size();
  for (size_t begin = 0; begin < scores.size(); begin += piece) {
    const size_t count = std::min(piece, scores.size() - begin);
    const size_t stay = rule.pattern.of ? std::min<size_t>(rule.pattern.kept, count)
                                        : count - size_t(rule.ratio * double(count) + 1e-9);
    order.resize(count);
    std::iota(order.begin(), order.end(), begin);
    std::nth_element(order.begin(), order.begin() + ptrdiff_t(stay), order.end(), [&](size_t a, size_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    for (size_t i = 0; i < count; ++i)
      kept[order[i]] = i < stay;
  }
}

KeptNumbers mlir::llm::keepLargest(MLIRContext *context, const SparseRule &rule, const Matrix &weight,
                                   ArrayRef<float> factors) {
  const size_t K = size_t(weight.K);
  KeptNumbers kept(weight.numbers.size());
  forRows(context, weight.N, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(K);
    SmallVector<size_t> order;
    for (int64_t n = begin; n < end; ++n) {
      for (size_t k = 0; k < K; ++k)
        scores[k] = std::fabs(weight.row(n)[k]) * (factors.empty() ? 1 : factors[k]);
      choose(rule, scores, MutableArrayRef(kept).slice(size_t(n) * K, K), order);
    }
  });
  return kept;
}

void mlir::llm::sparseGpt(MLIRContext *context, const SparseRule &rule, Matrix &weight, const InverseFactor &inputs,
                          const WeightScheme &scheme, QuantizedRows *codes) {
  const int64_t K = weight.K, group = codes ? scheme.groupOf(K) : 0, groups = scheme.groups(K);
  const int64_t piece = rule.pattern.of ? rule.pattern.of : 1;
  const int64_t block = ColumnSweep::blockOf(codes && scheme.group ? std::lcm(group, piece) : piece);
  KeptNumbers own;
  KeptNumbers &kept = codes ? codes->kept : own;
  kept.assign(weight.numbers.size(), 1);
  forRows(context, weight.N, ColumnSweep::kRows, [&](int64_t begin, int64_t end) {
    ColumnSweep sweep(inputs, weight, block);
    std::vector<float> scores;
    SmallVector<size_t> order;
    for (int64_t first = begin; first < end; first += ColumnSweep::kRows) {
      const int64_t count = std::min(ColumnSweep::kRows, end - first);
      const auto chooseFrom = [&](int64_t i, int64_t length) {
        length = std::min(length, K - i);
        for (int64_t r = 0; r < count; ++r) {
          scores.clear();
          for (int64_t j = i; j < i + length; ++j)
            scores.push_back(std::fabs(sweep.row(r)[j] / sweep.scale(j)));
          choose(rule, scores, MutableArrayRef(kept).slice(size_t((first + r) * K + i), size_t(length)), order);
        }
      };
      const auto reached = [&](int64_t i) {
        // Without a pattern all of a block is chosen at once.
        if (!rule.pattern.of && i % block == 0)
          chooseFrom(i, block);
        if (codes && i % group == 0) {
          // A grid is made for what would stay if nothing changed any more.
          const int64_t unknown = rule.pattern.of ? i : i + block;
          if (unknown < std::min(i + group, K))
            chooseFrom(unknown, i + group - unknown);
          for (int64_t r = 0; r < count; ++r) {
            const ArrayRef<float> numbers(sweep.row(r) + i, size_t(std::min(group, K - i)));
            codes->grids[size_t((first + r) * groups + i / group)] =
                bestGrid(scheme, codes->keptOf(numbers, first + r, i));
          }
        }
        if (rule.pattern.of && i % piece == 0)
          chooseFrom(i, piece);
      };
      sweep.run(first, count, reached, [&](int64_t r, int64_t i, float number) {
        const int64_t n = first + r;
        if (!kept[size_t(n * K + i)])
          return 0.0f;
        if (!codes)
          return number;
        const GroupGrid &grid = codes->grids[size_t(n * groups + i / group)];
        const float code = grid.code(number);
        codes->codes[size_t(n * K + i)] = int8_t(int(code));
        return grid.value(code);
      });
      for (int64_t r = 0; r < count && !codes; ++r)
        std::copy_n(sweep.row(r), K, weight.row(first + r).begin());
    }
  });
}
