#include "lib/Import/Rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir::llm;

/// The pair index (a real number) whose wave makes `turns` turns over the original context.
static double pairOfTurns(const RopeConfig &config, double turns) {
  const double wavelengths = double(config.originalContext) / (turns * 2.0 * std::numbers::pi);
  return double(config.dimensions) * std::log(wavelengths) / (2.0 * std::log(config.base));
}

RopeAngles mlir::llm::ropeAngles(const RopeConfig &config, std::span<const float> divisors) {
  RopeAngles angles;
  const bool yarn = config.scaling == RopeScaling::Yarn && config.extrapolation != 0.0;
  double low = 0.0, high = 0.0;
  if (yarn) {
    low = std::max(0.0, std::floor(pairOfTurns(config, config.betaFast)));
    high = std::min(double(config.dimensions - 1), std::ceil(pairOfTurns(config, config.betaSlow)));
  }
  for (int64_t pair = 0; pair < config.dimensions / 2; ++pair) {
    // In double: the only rounding is the last one, to f32.
    double trained = std::pow(config.base, -2.0 * double(pair) / double(config.dimensions));
    if (!divisors.empty())
      trained /= double(divisors[size_t(pair)]);
    double frequency = trained;
    if (config.scaling != RopeScaling::None) {
      const double stretched = trained / config.factor;
      double kept = 0.0;
      if (yarn) {
        const double ramp = (double(pair) - low) / std::max(0.001, high - low);
        kept = (1.0 - std::clamp(ramp, 0.0, 1.0)) * config.extrapolation;
      }
      frequency = stretched * (1.0 - kept) + trained * kept;
    }
    angles.frequencies.push_back(float(frequency));
  }
  angles.magnitude = config.attentionFactor;
  if (yarn && config.factor > 1.0) // Yarn sharpens attention as it stretches (its equation 22).
    angles.magnitude *= 1.0 + 0.1 * std::log(config.factor);
  return angles;
}
