#include "transforms/Quantize/Awq.h"

#include "transforms/Quantize/Gptq.h"
#include <cmath>

using namespace mlir;
using namespace mlir::llm;

/// Steps of α from 0 to 1.
static constexpr int kSteps = 20;
/// Rows of a weight that decide: an even choice of about so many.
static constexpr int64_t kRows = 48;

/// Mean magnitudes by factor, as powers α, their largest and smallest as far from 1.
static std::vector<double> scalesFor(const ScalableInput &input, const InputStatistics &x, double alpha) {
  std::vector<double> scales(size_t(input.factors()), 0);
  for (int64_t k = 0; k < x.width; ++k)
    scales[size_t(input.factorOf(k))] += x.magnitudes[size_t(k)] / double(x.rows * input.share);
  double least = HUGE_VAL, most = 0;
  for (double &scale : scales) {
    scale = std::pow(std::max(scale, 1e-4), alpha);
    least = std::min(least, scale), most = std::max(most, scale);
  }
  for (double &scale : scales)
    scale /= std::sqrt(least * most);
  return scales;
}

/// Some rows of a product's weight, evenly spread.
static Matrix sampleRows(const Matrix &all) {
  const int64_t step = std::max<int64_t>(1, all.N / kRows);
  Matrix some{(all.N + step - 1) / step, all.K, {}};
  for (int64_t n = 0; n < all.N; n += step)
    some.numbers.insert(some.numbers.end(), all.row(n).begin(), all.row(n).end());
  return some;
}

std::vector<float> mlir::llm::scaledMoments(ArrayRef<float> gram, ArrayRef<double> scales) {
  std::vector<float> moments(gram);
  const size_t K = scales.size();
  for (size_t i = 0; i < K; ++i)
    for (size_t j = 0; j < K; ++j)
      moments[i * K + j] /= float(scales[i] * scales[j]);
  return moments;
}

/// Σ (Wx − Q(W·s)/s·x)² of the sampled rows, s being one a column.
static double errorWith(ArrayRef<Matrix> weights, const InputStatistics &x, const WeightScheme &scheme,
                        ArrayRef<double> scales, MLIRContext *context) {
  const int64_t K = x.width;
  // Rounding scaled columns costs what the moments of inputs divided by the scales say.
  const std::vector<float> moments = scaledMoments(x.gram, scales);
  double error = 0;
  for (const Matrix &weight : weights) {
    Matrix scaled = weight;
    QuantizedRows rounded{weight.N, K, std::vector<int8_t>(weight.numbers.size()),
                          std::vector<GroupGrid>(size_t(weight.N * scheme.groups(K)))};
    forRows(context, weight.N, 16, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t k = 0; k < K; ++k)
          scaled.row(n)[size_t(k)] *= float(scales[size_t(k)]);
        roundRowFor(scheme, scaled.row(n), moments, rounded, n);
      }
    });
    error += outputError(context, scheme, scaled, rounded, moments);
  }
  return error;
}

FailureOr<ColumnScales> mlir::llm::scaleForRounding(Operation *layer, const LayerStatistics &statistics,
                                                    const WeightScheme &scheme, WeightStore &store,
                                                    WeightSpill &spill) {
  ColumnScales result;
  for (ScalableInput &input : scalableInputs(layer)) {
    auto found = statistics.find(input.products.front());
    if (found == statistics.end() || found->second->gram.empty())
      continue;
    const InputStatistics &x = *found->second;
    std::vector<Matrix> weights;
    for (LinearOp product : input.products) {
      FailureOr<Matrix> weight = readMatrix(product.getWeight(), store, product);
      if (failed(weight))
        return failure();
      weights.push_back(sampleRows(*weight));
    }
    std::vector<double> best, bestColumns;
    double least = HUGE_VAL;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<double> scales = scalesFor(input, x, double(step) / kSteps), columns;
      for (int64_t k = 0; k < x.width; ++k)
        columns.push_back(scales[size_t(input.factorOf(k))]);
      const double error = errorWith(weights, x, scheme, columns, layer->getContext());
      if (error < least)
        least = error, best = std::move(scales), bestColumns = std::move(columns);
    }
    if (best.empty())
      continue;
    if (failed(scaleInput(input, best, spill)))
      return failure();
    for (LinearOp product : input.products)
      result[product] = bestColumns;
  }
  return result;
}
