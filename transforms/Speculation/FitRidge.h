// Heads in closed form: the next hidden state from this one and the token after it, by least squares over a text.
#ifndef SPRIG_TRANSFORMS_SPECULATION_FITRIDGE_H
#define SPRIG_TRANSFORMS_SPECULATION_FITRIDGE_H

#include "lib/Calibration/ActivationSource.h"
#include <vector>

namespace mlir::llm {

/// `argmin |W_h norm(h_t) + W_e emb(x_t+1) + b - s_t+1|² + λ(|W_h|² + |W_e|²)`, s being h of unit root mean square: the
/// final norm, which reads it, knows no scale.
struct RidgeHeads {
  int64_t width = 0;
  std::vector<float> hidden, embedding; ///< [width, width]: W_h, W_e
  std::vector<float> bias;              ///< [width]
  int64_t pairs = 0, held = 0;          ///< of states that were fitted, and kept apart
  double explained = 0;                 ///< share of the variance of those kept apart
};

struct RidgeOptions {
  CalibrationOptions text;
  double damping = 0.01; ///< λ over the mean of the inputs' second moments
};

/// Reads the text that the function's context has (ActivationSource), one window in eight being kept apart where there
/// are eight. Errors are diagnostics.
FailureOr<RidgeHeads> fitRidge(func::FuncOp forward, const RidgeOptions &options);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_SPECULATION_FITRIDGE_H
