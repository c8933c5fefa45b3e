// Rotary position embedding as a model states it, turned into the one form that
// the dialect knows: a frequency for each rotated pair, and a factor on the
// rotated vector.
#ifndef SPRIG_LIB_IMPORT_ROPE_H
#define SPRIG_LIB_IMPORT_ROPE_H

#include <cstdint>
#include <span>
#include <vector>

namespace mlir::llm {

/// How the trained frequencies are stretched over a longer context.
enum class RopeScaling {
  None,
  Linear, ///< every angle divided by `factor` (arXiv 2306.15595)
  Yarn,   ///< high frequencies kept, low ones divided, a ramp between (arXiv
          ///< 2309.00071, sections 3.2 to 3.4)
  Llama3, ///< the same idea by wavelengths (the model card of Llama 3.1)
  Long,   ///< a divisor for each pair, one set for positions within the
          ///< original context and one beyond (arXiv 2402.13753)
};

/// The statement, with the defaults that files leave out.
struct RopeConfig {
  double base = 10000.0;
  int64_t dimensions = 0; ///< rotated components of a head, even
  RopeScaling scaling = RopeScaling::None;
  double factor = 1.0;
  int64_t originalContext = 0; ///< that the frequencies were trained for
  double attentionFactor = 1.0;
  /// Yarn: what latent attention multiplies its scores by besides.
  double scoreFactor = 1.0;
  /// Yarn: how much of the ramp applies.
  double extrapolation = 1.0;
  /// Yarn: turns over the original context above which a pair is kept, and
  /// below which it is divided.
  double betaFast = 32.0, betaSlow = 1.0;
  /// Yarn: whether the ramp begins and ends at whole pairs.
  bool wholePairs = true;
  /// Llama3: parts of the original context; longer waves than the first are
  /// divided, shorter ones than the second kept.
  double lowFactor = 1.0, highFactor = 4.0;
  /// The frequencies went through BF16, with the whole model.
  bool roundToBF16 = false;
  /// Long: a divisor for each pair.
  std::vector<float> shortDivisors, longDivisors;
};

/// What a rotation needs: component pair `i` of a token at position `p` turns
/// by `p * frequencies[i]` radians and is multiplied by `magnitude`.
struct RopeAngles {
  std::vector<float> frequencies; ///< `dimensions / 2`
  /// Of positions from the original context on; empty where all are alike.
  std::vector<float> longFrequencies;
  double magnitude = 1.0;
};

/// The angles of `config`. `divisors` (the `rope_freqs.weight` of a file: one
/// number a pair, or none) divide the trained frequencies before any scaling.
RopeAngles ropeAngles(const RopeConfig &config,
                      std::span<const float> divisors = {});

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_ROPE_H
