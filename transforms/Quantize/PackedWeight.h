// Codes and scales as tensors of the file of new weights, and the expression that puts them together.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_PACKEDWEIGHT_H
#define SPRIG_TRANSFORMS_QUANTIZE_PACKEDWEIGHT_H

#include "lib/Weights/WeightSpill.h"
#include "transforms/Quantize/Codebook.h"
#include "transforms/Quantize/Scheme.h"

namespace mlir::llm {

/// Writes `rows` as NAME.codes, NAME.scales, NAME.zeros and NAME.patterns (of N:M exactly N of each M are kept), and
/// makes before the builder's place
///
///   %q = llm.assemble %codes scales(%scales …) … : … -> tensor<…, #llm.layout<packed>>
///   %w = llm.dequantize %q : … -> tensor<…xf32>
///
/// with the leading dimensions of `like`. Gives back %w, which llm-fuse-dequantize removes again.
FailureOr<Value> writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                             RankedTensorType like, const WeightScheme &scheme, const QuantizedRows &rows);

/// The same without the last op: gives back %q.
FailureOr<Value> writeQuantised(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                RankedTensorType like, const WeightScheme &scheme, const QuantizedRows &rows);

/// The same as writePacked of indices into learned books: NAME.codes and NAME.book, a row of f16 for each row of the weight.
FailureOr<Value> writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                             RankedTensorType like, const CodebookRows &rows);

/// Writes a vector as f64, so that a factor and its inverse cancel, and gives it back as a weight.
FailureOr<Value> writeVector(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                             ArrayRef<double> numbers);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_PACKEDWEIGHT_H
