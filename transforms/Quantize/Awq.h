// AWQ (Lin et al., arXiv 2306.00978): columns that meet large inputs are scaled up before they are rounded, and ranges are
// clipped where outputs lose least by it.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_AWQ_H
#define SPRIG_TRANSFORMS_QUANTIZE_AWQ_H

#include "lib/Calibration/ActivationSource.h"
#include "transforms/Quantize/InputScales.h"
#include "transforms/Quantize/Scheme.h"

namespace mlir::llm {

/// By product of a layer, the factors of its columns.
using ColumnScales = llvm::DenseMap<Operation *, std::vector<double>>;

/// Scales `s = E|x|^α / sqrt(max·min)` of the inputs in `layer`, α the best of a grid by the squared error of the
/// products' outputs when they are rounded as roundRowFor does, are folded into their producers. Weights stay floats;
/// rounding them is the caller's, for inputs that scaledMoments() tells of.
FailureOr<ColumnScales> scaleForRounding(Operation *layer, const LayerStatistics &statistics, const WeightScheme &scheme,
                                         WeightStore &store, WeightSpill &spill);

/// Second moments of inputs that were divided by `scales`.
std::vector<float> scaledMoments(ArrayRef<float> gram, ArrayRef<double> scales);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_AWQ_H
