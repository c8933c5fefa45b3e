#include "transforms/Quantize/Scheme.h"

#include "lib/Quant/Affine.h"
#include "lib/Quant/Half.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

/// To the nearest integer, ties to even, of numbers below 2^22: compilers vectorise it on every processor.
static float nearest(float x) {
  constexpr float kMagic = 12582912.0f; // 1.5 * 2^23: its unit in the last place is 1
  return (x + kMagic) - kMagic;
}

static float toHalf(float x) { return quant::halfToFloat(quant::floatToHalf(x)); }

std::string WeightScheme::whyRefused() const {
  if (bits < 2 || bits > 8 || bits == 7)
    return "expects 2, 3, 4, 5, 6 or 8 bits, but got " + std::to_string(bits);
  if (group < 0 || group % quant::kAffineUnit || group > quant::kLargestAffineGroup)
    return "expects a group of a multiple of " + std::to_string(quant::kAffineUnit) + " up to " +
           std::to_string(quant::kLargestAffineGroup) + ", or 0 for whole rows, but got " + std::to_string(group);
  if (sparsity.of && bits != 4 && bits != 8)
    return "expects 4 or 8 bits for N:M, but got " + std::to_string(bits);
  return "";
}

QuantizedType WeightScheme::type(MLIRContext *context) const {
  const int64_t size = group == 0 ? kWholeRow : group;
  if (symmetric)
    return QuantizedType::get(context, QuantCode::signedInt(bits), "", sparsity,
                              {QuantLevel::scaled(size, ScaleType::f16())});
  return QuantizedType::get(
      context, QuantCode::unsignedInt(bits), "", sparsity,
      {QuantLevel::withOffset(size, ScaleType::f16(), OffsetKind::Zero, ScaleType::unsignedInt(bits))});
}

float GroupGrid::code(float w) const {
  if (scale == 0)
    return zero;
  return std::clamp(nearest(std::clamp(w / scale, -1e6f, 1e6f)) + zero, least, most);
}

static GroupGrid symmetricGrid(const WeightScheme &scheme, float scale) {
  return {toHalf(scale), 0, scheme.least(), scheme.most()};
}

static GroupGrid zeroGrid(const WeightScheme &scheme, float low, float high) {
  GroupGrid grid{toHalf((high - low) / scheme.most()), 0, 0, scheme.most()};
  if (grid.scale > 0)
    grid.zero = std::clamp(nearest(-low / grid.scale), 0.0f, grid.most);
  return grid;
}

GroupGrid mlir::llm::rangeGrid(const WeightScheme &scheme, ArrayRef<float> w, float clip) {
  if (w.empty()) // nothing is kept
    return scheme.symmetric ? symmetricGrid(scheme, 0) : zeroGrid(scheme, 0, 0);
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  if (scheme.symmetric)
    return symmetricGrid(scheme, std::max(-*low, *high) * clip / scheme.most());
  return zeroGrid(scheme, std::min(*low, 0.0f) * clip, std::max(*high, 0.0f) * clip);
}

/// Squared error of a group, of `limit` at most: the sum stops there.
static double errorOf(const GroupGrid &grid, ArrayRef<float> w, ArrayRef<float> importance, double limit) {
  const float inverse = grid.scale == 0 ? 0 : 1 / grid.scale;
  double sum = 0;
  for (size_t begin = 0; begin < w.size() && sum < limit; begin += 32) {
    const size_t count = std::min<size_t>(32, w.size() - begin);
    float part = 0;
    for (size_t i = 0; i < count; ++i) {
      const float x = w[begin + i];
      const float code = std::clamp(nearest(x * inverse) + grid.zero, grid.least, grid.most);
      const float error = x - grid.value(code);
      part += error * error * (importance.empty() ? 1 : importance[begin + i]);
    }
    sum += part;
  }
  return sum;
}

/// Calls `consider` for ranges clipped by up to a half, for symmetric codes of either sign of the scale, else with the
/// zero point next to the range's own as well.
template <typename Consider> static void forClippedGrids(const WeightScheme &scheme, ArrayRef<float> w, Consider consider) {
  constexpr int kSteps = 24;
  if (scheme.symmetric) {
    const float top = rangeGrid(scheme, w).scale * scheme.most();
    for (int i = 0; i <= kSteps; ++i) {
      const float magnitude = top * (1.08f - 0.58f * float(i) / kSteps);
      consider(symmetricGrid(scheme, magnitude / scheme.most()));
      consider(symmetricGrid(scheme, -magnitude / scheme.most()));
    }
    return;
  }
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  const float bottom = std::min(*low, 0.0f), top = std::max(*high, 0.0f);
  for (int i = 0; i <= kSteps; ++i)
    for (float shift : {0.0f, -1.0f, 1.0f}) {
      const float clip = 1.05f - 0.55f * float(i) / kSteps;
      GroupGrid grid = zeroGrid(scheme, bottom * clip, top * clip);
      grid.zero += shift;
      if (grid.zero >= 0 && grid.zero <= grid.most)
        consider(grid);
    }
}

GroupGrid mlir::llm::bestGrid(const WeightScheme &scheme, ArrayRef<float> w, ArrayRef<float> importance) {
  GroupGrid best = rangeGrid(scheme, w);
  if (best.scale == 0)
    return best;
  double least = errorOf(best, w, importance, HUGE_VAL);
  forClippedGrids(scheme, w, [&](const GroupGrid &grid) {
    if (grid.scale == 0)
      return;
    if (const double error = errorOf(grid, w, importance, least); error < least)
      best = grid, least = error;
  });
  return best;
}

GroupGrid mlir::llm::bestGridFor(const WeightScheme &scheme, ArrayRef<float> w, const float *moments, int64_t stride) {
  const GroupGrid whole = rangeGrid(scheme, w);
  if (whole.scale == 0)
    return whole;
  // The whole sum takes as many steps as the group has numbers, for each of them: it decides among a few.
  constexpr size_t kTried = 6;
  const auto count = ptrdiff_t(w.size());
  std::vector<float> diagonal(w.size());
  for (size_t i = 0; i < w.size(); ++i)
    diagonal[i] = moments[ptrdiff_t(i) * (stride + 1)];
  std::vector<std::pair<double, GroupGrid>> tried = {{errorOf(whole, w, diagonal, HUGE_VAL), whole}};
  forClippedGrids(scheme, w, [&](const GroupGrid &grid) {
    const double limit = tried.size() < kTried ? HUGE_VAL : tried.back().first;
    const double error = grid.scale == 0 ? HUGE_VAL : errorOf(grid, w, diagonal, limit);
    if (!(error < limit))
      return;
    if (tried.size() == kTried)
      tried.pop_back();
    tried.insert(llvm::upper_bound(tried, error, [](double value, const auto &entry) { return value < entry.first; }),
                 {error, grid});
  });
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Rows, 0, Eigen::OuterStride<>> H(moments, count, count, Eigen::OuterStride<>(stride));
  Eigen::VectorXf lost(count);
  GroupGrid best = whole;
  double least = HUGE_VAL;
  for (const auto &[error, grid] : tried) {
    for (ptrdiff_t i = 0; i < count; ++i)
      lost[i] = w[size_t(i)] - grid.round(w[size_t(i)]);
    if (const double sum = double(lost.dot(H * lost)); sum < least)
      best = grid, least = sum;
  }
  return best;
}

void mlir::llm::roundRowFor(const WeightScheme &scheme, ArrayRef<float> w, ArrayRef<float> gram, QuantizedRows &into,
                            int64_t row) {
  const int64_t K = into.K, group = scheme.groupOf(K), groups = scheme.groups(K);
  if (!into.kept.empty()) {
    std::vector<float> diagonal(static_cast<size_t>(K));
    for (int64_t k = 0; k < K; ++k)
      diagonal[size_t(k)] = gram[size_t(k * K + k)];
    return roundRow(scheme, w, /*best=*/true, into, row, diagonal);
  }
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * group;
    const ArrayRef<float> numbers = w.slice(size_t(first), size_t(std::min(group, K - first)));
    const GroupGrid grid = bestGridFor(scheme, numbers, gram.data() + first * K + first, K);
    into.grids[size_t(row * groups + g)] = grid;
    for (auto [i, x] : llvm::enumerate(numbers))
      into.codes[size_t(row * K + first) + i] = int8_t(int(grid.code(x)));
  }
}

void mlir::llm::roundRow(const WeightScheme &scheme, ArrayRef<float> w, bool best, QuantizedRows &into, int64_t row,
                         ArrayRef<float> importance) {
  const int64_t K = into.K, group = scheme.groupOf(K), groups = scheme.groups(K);
  for (int64_t g = 0; g < groups; ++g) {
    const auto part = [&](ArrayRef<float> all) {
      return all.empty() ? all : all.slice(size_t(g * group), size_t(std::min(group, K - g * group)));
    };
    const ArrayRef<float> numbers = part(w);
    std::vector<float> kept, weights;
    if (!into.kept.empty()) {
      kept = into.keptOf(numbers, row, g * group);
      weights = into.keptOf(part(importance), row, g * group);
    }
    const ArrayRef<float> fitted = into.kept.empty() ? numbers : ArrayRef<float>(kept),
                          weighed = into.kept.empty() ? part(importance) : ArrayRef<float>(weights);
    const GroupGrid grid = best ? bestGrid(scheme, fitted, weighed) : rangeGrid(scheme, fitted);
    into.grids[size_t(row * groups + g)] = grid;
    int8_t *codes = into.codes.data() + row * K + g * group;
    for (auto [i, x] : llvm::enumerate(numbers))
      codes[i] = int8_t(int(grid.code(into.keeps(row, g * group + int64_t(i)) ? x : 0)));
  }
}
