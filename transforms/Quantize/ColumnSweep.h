// Columns of a weight one after another, as in GPTQ and SparseGPT: what is lost in one is made up for in those that
// follow, as the second moments of the inputs allow.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_COLUMNSWEEP_H
#define SPRIG_TRANSFORMS_QUANTIZE_COLUMNSWEEP_H

#include "transforms/Quantize/Gptq.h"

#include <Eigen/Core>

namespace mlir::llm {

/// Some rows of one weight on their way through the columns, in the order of `inputs`.
class ColumnSweep {
public:
  /// Rows that are worked on together: they stay in the cache.
  static constexpr int64_t kRows = 32;
  /// Columns between two updates of all that follows: the multiple of `unit` nearest below 128, or `unit`. Within a
  /// block all numbers are up to date, so that whole units can be looked at when their first column is reached.
  static int64_t blockOf(int64_t unit) { return std::max<int64_t>(1, 128 / unit) * unit; }

  ColumnSweep(const InverseFactor &inputs, const Matrix &weight, int64_t block)
      : inputs(inputs), weight(weight), K(weight.K), block(block) {}

  /// The number of row `r` (from `first` on) that is worked on as number `i`.
  float *row(int64_t r) { return numbers.data() + r * K; }
  /// What a number lost costs, by column: a loss e in column i adds (e / scale(i))² to the error.
  float scale(int64_t i) const { return inputs.upper[size_t(i * K + i)]; }

  /// `reached(i)` before column i; then `round(r, i, number)` gives what each row has there from now on.
  template <typename Reached, typename Round>
  void run(int64_t first, int64_t count, Reached reached, Round round) {
    using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Stride = Eigen::OuterStride<>;
    numbers.resize(size_t(count * K));
    errors.resize(size_t(count * block));
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < K; ++i)
        numbers[size_t(r * K + i)] = weight.row(first + r)[size_t(inputs.order[size_t(i)])];
    for (int64_t begin = 0; begin < K; begin += block) {
      const int64_t end = std::min(begin + block, K);
      for (int64_t i = begin; i < end; ++i) {
        reached(i);
        const float *upper = inputs.upper.data() + i * K;
        for (int64_t r = 0; r < count; ++r) {
          float *all = row(r);
          const float now = round(r, i, all[i]), lost = (all[i] - now) / upper[i];
          errors[size_t(r * block + i - begin)] = lost;
          all[i] = now;
          if (lost != 0)
            for (int64_t j = i + 1; j < end; ++j)
              all[j] -= lost * upper[j];
        }
      }
      if (end == K)
        break;
      Eigen::Map<Rows, 0, Stride> rest(numbers.data() + end, count, K - end, Stride(K));
      Eigen::Map<const Rows, 0, Stride> lost(errors.data(), count, end - begin, Stride(block));
      Eigen::Map<const Rows, 0, Stride> upper(inputs.upper.data() + begin * K + end, end - begin, K - end, Stride(K));
      rest.noalias() -= lost * upper;
    }
  }

private:
  const InverseFactor &inputs;
  const Matrix &weight;
  int64_t K, block;
  std::vector<float> numbers, errors;
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_COLUMNSWEEP_H
