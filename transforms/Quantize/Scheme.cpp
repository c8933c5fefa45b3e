#include "transforms/Quantize/Scheme.h"

#include "lib/Quant/Affine.h"
#include "lib/Quant/Half.h"

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

GroupGrid mlir::llm::bestGrid(const WeightScheme &scheme, ArrayRef<float> w, ArrayRef<float> importance) {
  GroupGrid best = rangeGrid(scheme, w);
  if (best.scale == 0)
    return best;
  double least = errorOf(best, w, importance, HUGE_VAL);
  const auto consider = [&](const GroupGrid &grid) {
    if (grid.scale == 0)
      return;
    if (const double error = errorOf(grid, w, importance, least); error < least)
      best = grid, least = error;
  };
  constexpr int kSteps = 24;
  if (scheme.symmetric) {
    const float top = best.scale * scheme.most();
    for (int i = 0; i <= kSteps; ++i) {
      const float magnitude = top * (1.08f - 0.58f * float(i) / kSteps);
      consider(symmetricGrid(scheme, magnitude / scheme.most()));
      consider(symmetricGrid(scheme, -magnitude / scheme.most()));
    }
    return best;
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
  return best;
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
