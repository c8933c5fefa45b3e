#include "runtime/Speculation/Acceptance.h"

#include <algorithm>
#include <cmath>

namespace sprig {
namespace {

/// False where nothing is left.
bool normalise(double *weights, size_t size) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i)
    sum += weights[i];
  if (!(sum > 0))
    return false;
  for (size_t i = 0; i < size; ++i)
    weights[i] /= sum;
  return true;
}

} // namespace

uint32_t drawFrom(const double *weights, size_t size, Uniform &uniform) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i)
    sum += weights[i];
  double left = uniform.next() * sum;
  uint32_t last = 0;
  for (size_t i = 0; i < size; ++i) {
    if (!(weights[i] > 0))
      continue;
    last = uint32_t(i);
    left -= weights[i];
    if (left < 0)
      break;
  }
  return last; // rounding may leave a rest: the last possible one
}

Verdict acceptSampled(double *target, double *draft, size_t size,
                      const uint32_t *children, size_t count, Draws draws,
                      Uniform &uniform) {
  for (size_t c = 0; c < count; ++c) {
    const uint32_t token = children[c];
    // A draft that did not have the token did not draw it: never kept.
    if (draft[token] > 0 &&
        uniform.next() * draft[token] < target[token])
      return {token, int32_t(c)};
    double sum = 0;
    for (size_t i = 0; i < size; ++i)
      sum += std::max(target[i] - draft[i], 0.0);
    // Equal distributions: then the child was kept but for rounding.
    if (!(sum > 0))
      break;
    for (size_t i = 0; i < size; ++i)
      target[i] = std::max(target[i] - draft[i], 0.0) / sum;
    if (draws == Draws::Distinct) {
      draft[token] = 0;
      if (!normalise(draft, size))
        break; // the draft has drawn all it knows
    }
  }
  return {drawFrom(target, size, uniform), -1};
}

Verdict acceptTypical(const double *target, size_t size,
                      const uint32_t *children, size_t count, double epsilon,
                      double delta, Uniform &uniform) {
  double entropy = 0;
  for (size_t i = 0; i < size; ++i)
    if (target[i] > 0)
      entropy -= target[i] * std::log(target[i]);
  const double least = std::min(epsilon, delta * std::exp(-entropy));
  for (size_t c = 0; c < count; ++c)
    if (target[children[c]] > least)
      return {children[c], int32_t(c)};
  return {drawFrom(target, size, uniform), -1};
}

} // namespace sprig
