// AWQ (Lin et al., arXiv 2306.00978): columns that meet large inputs are scaled up before they are rounded.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_AWQ_H
#define SPRIG_TRANSFORMS_QUANTIZE_AWQ_H

#include "lib/Calibration/ActivationSource.h"
#include "transforms/Quantize/InputScales.h"
#include "transforms/Quantize/Scheme.h"

namespace mlir::llm {

/// Scales `s = E|x|^α / sqrt(max·min)` of the inputs in `layer`, α the best of a grid by the squared error of the
/// products' outputs, are folded into their producers. Weights stay floats; rounding them is the caller's.
LogicalResult scaleForRounding(Operation *layer, const LayerStatistics &statistics, const WeightScheme &scheme,
                               WeightStore &store, WeightSpill &spill);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_AWQ_H
