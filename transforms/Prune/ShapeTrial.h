// What a shape does to a model, tried out: a copy is pruned to it, and its guesses compared with the model's own.
#ifndef SPRIG_TRANSFORMS_PRUNE_SHAPETRIAL_H
#define SPRIG_TRANSFORMS_PRUNE_SHAPETRIAL_H

#include "transforms/Prune/ShapeSites.h"

#include <array>

namespace mlir::llm {

class ShapeTrial {
public:
  /// Copies are fitted to the first `fit` tokens of the text and judged by the `judge` tokens behind them.
  ShapeTrial(func::FuncOp function, PruneSettings settings, int64_t fit, int64_t judge, ActivationSource &source);

  /// Reads what the model itself says. Errors are diagnostics, here and below.
  LogicalResult begin();

  /// How far the guesses of the pruned copy are from the model's: the mean over tokens of the divergence
  /// KL(model ‖ copy), of which the terms of the model's likeliest tokens are summed.
  FailureOr<double> divergence(ArrayRef<ShapeSite> sites, const Shape &shape);

  /// The likeliest tokens of one position, and the logarithms of their probabilities.
  static constexpr size_t kLikeliest = 32;
  struct Guess {
    std::array<int32_t, kLikeliest> tokens;
    std::array<float, kLikeliest> logs;
  };

private:
  func::FuncOp function;
  PruneSettings settings;
  CalibrationOptions fitted, read;
  ActivationSource &source;
  std::vector<Guess> wanted;
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_SHAPETRIAL_H
