// Which layers a draft can do without.
#ifndef SPRIG_TRANSFORMS_SPECULATION_LAYERCHOICE_H
#define SPRIG_TRANSFORMS_SPECULATION_LAYERCHOICE_H

#include "lib/Calibration/ActivationSource.h"

namespace mlir::llm {

struct LayerChoice {
  SmallVector<int64_t> skipped; ///< places in the order of the layers, ascending
  double agreement = 0;         ///< how often the arg-max stays; 0: not measured
  double cost = 1;              ///< of a guess, in steps of the model, by the bytes that it reads
};

/// Without a text: every second layer, from the end of the second third backwards, then those between them.
SmallVector<int64_t> layersByRule(int64_t layers, int64_t count);

/// `count` layers of `forward` by a text, or with -1 as many as pay most. Errors are diagnostics.
FailureOr<LayerChoice> layersByText(func::FuncOp forward, int64_t count, ActivationSource &text,
                                    const CalibrationOptions &options);

/// Tokens that a chain of guesses brings at best in the time of a step of the model, where each is right with
/// probability `agreement` and costs `cost` steps, and verifying any number of them costs one.
double bestRate(double agreement, double cost);

/// `forward` without the layers at these places.
void removeLayers(func::FuncOp forward, ArrayRef<int64_t> places);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_SPECULATION_LAYERCHOICE_H
