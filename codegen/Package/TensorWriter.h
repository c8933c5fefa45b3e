// The bytes of a plan.tensor: its region evaluated, laid out as the operation says.
#ifndef SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H
#define SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H

#include "codegen/Package/WeightSection.h"
#include "lib/Weights/WeightExpr.h"

namespace mlir::llm {

/// Appends `tensor` to the section, at most a few MiB of it in memory at a time. Layouts:
///
///   tiled<rows=R>   the planes of lib/Quant/Layout.h
///   f32             numbers in row-major order, decoded to f32: gammas, biases, tables
LogicalResult writeTensor(plan::TensorOp tensor, WeightEvaluator &weights, SectionStream &section);

/// Bytes of a tensor of that type and layout, or an error at `loc` that says why there is no such thing.
FailureOr<uint64_t> tensorBytes(Location loc, RankedTensorType type, StringRef layout);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H
