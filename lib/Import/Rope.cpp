#include "lib/Import/Rope.h"

#include "lib/Quant/Half.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir::llm;

/// The pair index (a real number) whose wave makes `turns` turns over the
/// original context.
static double pairOfTurns(const RopeConfig &config, double turns) {
  const double wavelengths =
      double(config.originalContext) / (turns * 2.0 * std::numbers::pi);
  return double(config.dimensions) * std::log(wavelengths) /
         (2.0 * std::log(config.base));
}

/// How much of each trained frequency Yarn keeps: 1 up to pair `low`, 0 from
/// pair `high` on.
static double yarnKeeps(const RopeConfig &config, int64_t pair) {
  double low = pairOfTurns(config, config.betaFast);
  double high = pairOfTurns(config, config.betaSlow);
  if (config.wholePairs) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(0.0, low);
  high = std::min(double(config.dimensions - 1), high);
  const double ramp = (double(pair) - low) / std::max(0.001, high - low);
  return (1.0 - std::clamp(ramp, 0.0, 1.0)) * config.extrapolation;
}

/// The same for Llama 3, whose ramp is linear in turns over the original
/// context.
static double llama3Keeps(const RopeConfig &config, double frequency) {
  const double turns =
      double(config.originalContext) * frequency / (2.0 * std::numbers::pi);
  return std::clamp((turns - config.lowFactor) /
                        (config.highFactor - config.lowFactor),
                    0.0, 1.0);
}

static double scaled(const RopeConfig &config, int64_t pair, double trained) {
  double kept = 0.0;
  switch (config.scaling) {
  case RopeScaling::None:
  case RopeScaling::Long:
    return trained;
  case RopeScaling::Linear:
    break;
  case RopeScaling::Yarn:
    kept = config.extrapolation == 0.0 ? 0.0 : yarnKeeps(config, pair);
    break;
  case RopeScaling::Llama3:
    kept = llama3Keeps(config, trained);
    break;
  }
  return trained / config.factor * (1.0 - kept) + trained * kept;
}

static float rounded(const RopeConfig &config, double frequency) {
  using namespace sprig::quant;
  return config.roundToBF16 ? bfloatToFloat(floatToBfloat(float(frequency)))
                            : float(frequency);
}

RopeAngles mlir::llm::ropeAngles(const RopeConfig &config,
                                 std::span<const float> divisors) {
  RopeAngles angles;
  const bool isLong = config.scaling == RopeScaling::Long;
  if (isLong)
    divisors = config.shortDivisors;
  const auto divided = [](double frequency, std::span<const float> by,
                          int64_t pair) {
    return by.empty() ? frequency : frequency / double(by[size_t(pair)]);
  };
  for (int64_t pair = 0; pair < config.dimensions / 2; ++pair) {
    // In double: the only rounding is the last one, to f32.
    const double trained =
        std::pow(config.base, -2.0 * double(pair) / double(config.dimensions));
    angles.frequencies.push_back(rounded(
        config, scaled(config, pair, divided(trained, divisors, pair))));
    if (isLong)
      angles.longFrequencies.push_back(
          rounded(config, divided(trained, config.longDivisors, pair)));
  }
  angles.magnitude = config.attentionFactor;
  // Yarn sharpens attention as it stretches (its equation 22).
  if (config.scaling == RopeScaling::Yarn && config.extrapolation != 0.0 &&
      config.factor > 1.0)
    angles.magnitude *= 1.0 + 0.1 * std::log(config.factor);
  return angles;
}
