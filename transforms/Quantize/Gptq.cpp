#include "transforms/Quantize/Gptq.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using RowsView = Eigen::Map<Rows, 0, Stride>;
using ConstRowsView = Eigen::Map<const Rows, 0, Stride>;

/// Columns between two updates of all that follows.
static constexpr int64_t kBlock = 128;
/// Rows that are worked on together: they stay in the cache.
static constexpr int64_t kRows = 32;

FailureOr<InverseFactor> mlir::llm::invertMoments(ArrayRef<float> gram, int64_t K, double damping, bool byImportance) {
  InverseFactor result;
  result.K = K;
  result.order.resize(size_t(K));
  std::iota(result.order.begin(), result.order.end(), 0);
  double mean = 0;
  for (int64_t k = 0; k < K; ++k) {
    const float moment = gram[size_t(k * K + k)];
    result.diagonal.push_back(moment);
    result.dead.push_back(!(moment > 0));
    mean += moment / double(K);
  }
  if (byImportance)
    llvm::sort(result.order, [&](int64_t a, int64_t b) {
      const float first = result.diagonal[size_t(a)], second = result.diagonal[size_t(b)];
      return first != second ? first > second : a < b;
    });

  // Let J reverse the order. JHJ = LLᵀ makes H = RRᵀ with R = JLJ upper, and H⁻¹ = UᵀU with U = R⁻¹: one factorisation
  // and one triangular inverse.
  Eigen::MatrixXd reversed(K, K);
  const auto column = [&](int64_t i) { return result.order[size_t(K - 1 - i)]; };
  for (int64_t j = 0; j < K; ++j)
    for (int64_t i = 0; i < K; ++i)
      reversed(i, j) = gram[size_t(column(j) * K + column(i))];
  for (int64_t i = 0; i < K; ++i)
    reversed(i, i) = result.dead[size_t(column(i))] ? std::max(mean, 1e-30) : reversed(i, i) + damping * mean;
  const Eigen::LLT<Eigen::MatrixXd> factor(reversed);
  if (factor.info() != Eigen::Success)
    return failure();
  const Eigen::MatrixXd inverse = factor.matrixL().solve(Eigen::MatrixXd::Identity(K, K));
  if (!inverse.allFinite())
    return failure();
  result.upper.assign(size_t(K * K), 0);
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = i; j < K; ++j)
      result.upper[size_t(i * K + j)] = float(inverse(K - 1 - i, K - 1 - j));
  return result;
}

namespace {

/// Some rows of one weight on their way through the columns.
class Worker {
public:
  Worker(const WeightScheme &scheme, const InverseFactor &inputs, const Matrix &weight, QuantizedRows &into)
      : scheme(scheme), inputs(inputs), weight(weight), into(into), K(weight.K), group(scheme.groupOf(K)),
        groups(scheme.groups(K)) {
    inOrder = scheme.group != 0;
    for (int64_t k = 0; k < K && inOrder; ++k)
      inOrder = inputs.order[size_t(k)] == k;
    // A group is measured when its first column is reached, so updates are to be done by then.
    block = inOrder ? std::max<int64_t>(1, kBlock / group) * group : kBlock;
  }

  void run(int64_t first, int64_t count) {
    numbers.resize(size_t(count * K));
    errors.resize(size_t(count * block));
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < K; ++i)
        numbers[size_t(r * K + i)] = weight.row(first + r)[size_t(inputs.order[size_t(i)])];
    if (!inOrder)
      for (int64_t r = 0; r < count; ++r)
        roundRow(scheme, weight.row(first + r), /*best=*/true, into, first + r);
    for (int64_t begin = 0; begin < K; begin += block) {
      const int64_t end = std::min(begin + block, K);
      for (int64_t i = begin; i < end; ++i) {
        if (inOrder && i % group == 0)
          measure(first, count, i);
        roundColumn(first, count, begin, i, end);
      }
      if (end == K)
        break;
      RowsView rest(numbers.data() + end, count, K - end, Stride(K));
      ConstRowsView lost(errors.data(), count, end - begin, Stride(block));
      ConstRowsView upper(inputs.upper.data() + begin * K + end, end - begin, K - end, Stride(K));
      rest.noalias() -= lost * upper;
    }
  }

private:
  void measure(int64_t first, int64_t count, int64_t i) {
    const size_t length = size_t(std::min(group, K - i));
    for (int64_t r = 0; r < count; ++r)
      into.grids[size_t((first + r) * groups + i / group)] =
          bestGrid(scheme, ArrayRef(numbers).slice(size_t(r * K + i), length));
  }

  void roundColumn(int64_t first, int64_t count, int64_t begin, int64_t i, int64_t end) {
    const float *upper = inputs.upper.data() + i * K;
    const int64_t k = inputs.order[size_t(i)];
    for (int64_t r = 0; r < count; ++r) {
      float *row = numbers.data() + r * K;
      const GroupGrid &grid = into.grids[size_t((first + r) * groups + k / group)];
      const float code = grid.code(row[i]);
      into.codes[size_t((first + r) * K + k)] = int8_t(int(code));
      const float lost = (row[i] - grid.value(code)) / upper[i];
      errors[size_t(r * block + i - begin)] = lost;
      for (int64_t j = i + 1; j < end; ++j)
        row[j] -= lost * upper[j];
    }
  }

  const WeightScheme &scheme;
  const InverseFactor &inputs;
  const Matrix &weight;
  QuantizedRows &into;
  int64_t K, group, groups, block;
  bool inOrder;
  std::vector<float> numbers, errors;
};

} // namespace

QuantizedRows mlir::llm::gptq(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight,
                              const InverseFactor &inputs) {
  QuantizedRows into{weight.N, weight.K, std::vector<int8_t>(weight.numbers.size()),
                     std::vector<GroupGrid>(size_t(weight.N * scheme.groups(weight.K)))};
  forRows(context, weight.N, kRows, [&](int64_t begin, int64_t end) {
    Worker worker(scheme, inputs, weight, into);
    for (int64_t first = begin; first < end; first += kRows)
      worker.run(first, std::min(kRows, end - first));
  });
  return into;
}

double mlir::llm::outputError(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight,
                              const QuantizedRows &rounded, ArrayRef<float> gram, int64_t step) {
  const int64_t K = weight.K, rows = (weight.N + step - 1) / step;
  std::vector<double> sums(size_t(rows), 0);
  const ConstRowsView moments(gram.data(), K, K, Stride(K));
  forRows(context, rows, kRows, [&](int64_t begin, int64_t end) {
    Rows lost(end - begin, K);
    for (int64_t i = begin; i < end; ++i)
      for (int64_t k = 0; k < K; ++k)
        lost(i - begin, k) = weight.row(i * step)[size_t(k)] - rounded.value(scheme, i * step, k);
    const Rows product = lost * moments;
    for (int64_t i = begin; i < end; ++i)
      sums[size_t(i)] = double(product.row(i - begin).dot(lost.row(i - begin)));
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}
