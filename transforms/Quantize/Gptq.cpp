#include "transforms/Quantize/ColumnSweep.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using ConstRowsView = Eigen::Map<const Rows, 0, Stride>;

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

FailureOr<InverseFactor> mlir::llm::invertWithDamping(Operation *product, ArrayRef<float> gram, int64_t K,
                                                      double damping, bool byImportance) {
  constexpr double kMost = 1, kFirst = 1e-4;
  // None was asked for where `damping` is 0: it has a next one all the same.
  for (double strength = damping; strength <= kMost; strength = std::max(10 * strength, kFirst))
    if (FailureOr<InverseFactor> found = invertMoments(gram, K, strength, byImportance); succeeded(found))
      return found;
  return product->emitOpError("expects inputs whose second moments can be inverted, but damping of ")
         << kMost << " times their mean does not suffice";
}

QuantizedRows mlir::llm::gptq(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight,
                              const InverseFactor &inputs, const KeptNumbers &kept) {
  const int64_t K = weight.K, group = scheme.groupOf(K), groups = scheme.groups(K);
  QuantizedRows into{weight.N, K, std::vector<int8_t>(weight.numbers.size()),
                     std::vector<GroupGrid>(size_t(weight.N * groups)), kept};
  bool inOrder = scheme.group != 0;
  for (int64_t k = 0; k < K && inOrder; ++k)
    inOrder = inputs.order[size_t(k)] == k;
  // A group is measured when its first column is reached, so updates are to be done by then.
  const int64_t block = ColumnSweep::blockOf(inOrder ? group : 1);
  forRows(context, weight.N, ColumnSweep::kRows, [&](int64_t begin, int64_t end) {
    ColumnSweep sweep(inputs, weight, block);
    for (int64_t first = begin; first < end; first += ColumnSweep::kRows) {
      const int64_t count = std::min(ColumnSweep::kRows, end - first);
      for (int64_t n = first; n < first + count && !inOrder; ++n)
        roundRow(scheme, weight.row(n), /*best=*/true, into, n);
      const auto reached = [&](int64_t i) {
        for (int64_t r = 0; inOrder && i % group == 0 && r < count; ++r)
          into.grids[size_t((first + r) * groups + i / group)] =
              bestGrid(scheme, into.keptOf(ArrayRef(sweep.row(r) + i, size_t(std::min(group, K - i))), first + r, i));
      };
      sweep.run(first, count, reached, [&](int64_t r, int64_t i, float number) {
        const int64_t n = first + r, k = inputs.order[size_t(i)];
        if (!into.keeps(n, k))
          return 0.0f;
        const GroupGrid &grid = into.grids[size_t(n * groups + k / group)];
        const float code = grid.code(number);
        into.codes[size_t(n * K + k)] = int8_t(int(code));
        return grid.value(code);
      });
    }
  });
  return into;
}

double mlir::llm::outputError(MLIRContext *context, const WeightScheme &scheme, const Matrix &weight,
                              const QuantizedRows &rounded, ArrayRef<float> gram, int64_t step) {
  const int64_t K = weight.K, rows = (weight.N + step - 1) / step;
  std::vector<double> sums(size_t(rows), 0);
  const ConstRowsView moments(gram.data(), K, K, Stride(K));
  forRows(context, rows, ColumnSweep::kRows, [&](int64_t begin, int64_t end) {
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
