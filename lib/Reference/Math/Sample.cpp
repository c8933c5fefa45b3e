#include "lib/Reference/Math/Sample.h"

#include "lib/Reference/Math/Noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlir::llm::reference {
namespace {

constexpr float kDropped = -std::numeric_limits<float>::infinity();

size_t largest(const std::vector<float> &z) {
  return size_t(std::max_element(z.begin(), z.end()) - z.begin()); // the first of equals
}

void penalise(std::vector<float> &z, std::span<const int32_t> window, float penalty) {
  std::vector<int32_t> ids(window.begin(), window.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (int32_t id : ids)
    if (id >= 0 && size_t(id) < z.size())
      z[id] = z[id] > 0 ? z[id] / penalty : z[id] * penalty;
}

void dropBelow(std::vector<float> &z, float threshold) {
  for (float &value : z)
    if (value < threshold)
      value = kDropped;
}

/// The value of the last token of the shortest descending prefix whose
/// probability reaches `topP`.
float topPThreshold(const std::vector<float> &z, float topP) {
  std::vector<float> kept;
  std::copy_if(z.begin(), z.end(), std::back_inserter(kept), [](float value) { return value != kDropped; });
  std::sort(kept.begin(), kept.end(), std::greater<>());
  if (kept.empty())
    return kDropped;
  double total = 0;
  for (float value : kept)
    total += std::exp(double(value) - kept[0]);
  double sum = 0;
  for (float value : kept) {
    sum += std::exp(double(value) - kept[0]);
    if (sum >= double(topP) * total)
      return value;
  }
  return kept.back();
}

} // namespace

template <typename F>
int32_t sample(std::span<const F> logits, const SampleParameters &parameters, std::span<const int32_t> history,
               uint32_t position) {
  std::vector<float> z(logits.size());
  for (size_t i = 0; i < z.size(); ++i)
    z[i] = std::isnan(logits[i]) ? kDropped : float(logits[i]);
  if (parameters.repeatPenalty != 1)
    penalise(z, history.last(std::min<size_t>(history.size(), parameters.repeatLastN)), parameters.repeatPenalty);
  if (!(parameters.temperature > 0))
    return int32_t(largest(z));
  const float inverse = 1.0f / parameters.temperature;
  for (float &value : z)
    value *= inverse;
  if (parameters.topK != 0 && parameters.topK < z.size()) {
    std::vector<float> order = z;
    std::nth_element(order.begin(), order.begin() + (parameters.topK - 1), order.end(), std::greater<>());
    dropBelow(z, order[parameters.topK - 1]);
  }
  if (parameters.topP < 1)
    dropBelow(z, topPThreshold(z, parameters.topP));
  if (parameters.minP > 0)
    dropBelow(z, z[largest(z)] + std::log(parameters.minP));
  const NoiseKey key(parameters.seedLow, parameters.seedHigh, position);
  for (size_t i = 0; i < z.size(); ++i)
    if (z[i] != kDropped)
      z[i] += gumbel(key, uint32_t(i));
  return int32_t(largest(z));
}

template <typename F>
TreeVerdict verifyTree(std::span<const F> logits, size_t V, std::span<const int32_t> tokens,
                       std::span<const int32_t> parents, const SampleParameters &parameters,
                       std::span<const int32_t> history, uint32_t position) {
  TreeVerdict verdict;
  std::vector<int32_t> path(history.begin(), history.end());
  size_t node = 0;
  while (true) {
    verdict.accepted.push_back(int32_t(node));
    path.push_back(tokens[node]);
    verdict.bonus = sample(logits.subspan(node * V, V), parameters, std::span<const int32_t>(path), ++position);
    size_t child = node + 1;
    while (child < tokens.size() && !(parents[child] == int32_t(node) && tokens[child] == verdict.bonus))
      ++child;
    if (child == tokens.size())
      return verdict;
    node = child;
  }
}

void treeMask(std::span<const int32_t> parents, std::span<int32_t> mask, std::span<int32_t> depths) {
  for (size_t i = 0; i < parents.size(); ++i) {
    const bool root = parents[i] < 0;
    uint64_t bits = uint64_t(1) << i;
    if (!root)
      bits |= uint64_t(uint32_t(mask[2 * parents[i]])) | uint64_t(uint32_t(mask[2 * parents[i] + 1])) << 32;
    mask[2 * i] = int32_t(uint32_t(bits));
    mask[2 * i + 1] = int32_t(uint32_t(bits >> 32));
    depths[i] = root ? 0 : depths[parents[i]] + 1;
  }
}

template int32_t sample<float>(std::span<const float>, const SampleParameters &, std::span<const int32_t>, uint32_t);
template int32_t sample<double>(std::span<const double>, const SampleParameters &, std::span<const int32_t>, uint32_t);
template TreeVerdict verifyTree<float>(std::span<const float>, size_t, std::span<const int32_t>,
                                       std::span<const int32_t>, const SampleParameters &, std::span<const int32_t>,
                                       uint32_t);
template TreeVerdict verifyTree<double>(std::span<const double>, size_t, std::span<const int32_t>,
                                        std::span<const int32_t>, const SampleParameters &, std::span<const int32_t>,
                                        uint32_t);

} // namespace mlir::llm::reference
