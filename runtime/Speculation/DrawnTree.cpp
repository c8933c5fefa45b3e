#include "runtime/Speculation/DrawnTree.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sprig {
namespace {

/// Splitmix64 (Steele, Lea and Flood 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

/// The row's probabilities at another temperature, of its tokens alone.
std::array<double, format::kGuesses> tempered(const GuessRow &row,
                                              float temperature) {
  std::array<double, format::kGuesses> weights{};
  double sum = 0;
  for (uint32_t i = 0; i < row.count; ++i)
    if (row.probabilities[i] > 0)
      sum += weights[i] = std::pow(
          double(row.probabilities[i]) / double(row.probabilities[0]),
          1 / double(temperature));
  for (double &weight : weights)
    weight = sum > 0 ? weight / sum : 0;
  return weights;
}

} // namespace

PlacedUniform::PlacedUniform(uint64_t seed, uint64_t place)
    : state(mixed(seed + kStep) ^ mixed(place * kStep + 0x5851f42d4c957f2du)) {}

double PlacedUniform::next() {
  return double(mixed(state += kStep) >> 11) * 0x1p-53;
}

void DrawnTree::reset(uint32_t token) {
  nodes.tokens[0] = token;
  nodes.parents[0] = -1;
  nodes.count = 1;
  at = 0;
  // A node without children was asked for nothing.
  for (uint32_t i = 0; i < words.size(); ++i)
    words[i] = i / format::kGuesses % 2 ? 0 : format::kNoGuess;
}

bool DrawnTree::grow(const GuessRow &row, float temperature, uint32_t branches,
                     Uniform &uniform) {
  std::array<double, format::kGuesses> weights = tempered(row, temperature);
  for (uint32_t i = 0; i < row.count; ++i) {
    uint32_t *word = words.data() + at * format::kGuessWords + i;
    const float weight = float(weights[i]);
    word[0] = row.tokens[i];
    std::memcpy(word + format::kGuesses, &weight, sizeof(weight));
  }
  const uint32_t parent = at;
  for (uint32_t drawn = 0;
       drawn < branches && nodes.count < format::kMostNodes; ++drawn) {
    if (std::none_of(weights.begin(), weights.end(),
                     [](double weight) { return weight > 0; }))
      break;
    const uint32_t guess = drawFrom(weights.data(), weights.size(), uniform);
    if (drawn == 0) {
      at = nodes.count;
      lastLikely = row.probabilities[guess];
    }
    weights[guess] = 0;
    nodes.tokens[nodes.count] = row.tokens[guess];
    nodes.parents[nodes.count] = int32_t(parent);
    ++nodes.count;
  }
  return at != parent;
}

} // namespace sprig
