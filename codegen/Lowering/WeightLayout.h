// How weights lie in the weight section, by the name that a `plan.tensor`
// carries:
//
//   tiled<rows=R>   the planes of lib/Quant/Layout.h, R rows to a tile: weights
//   of products and tables f32             numbers in row-major order, decoded
//   to f32: gammas, biases, frequencies
#ifndef SPRIG_CODEGEN_LOWERING_WEIGHTLAYOUT_H
#define SPRIG_CODEGEN_LOWERING_WEIGHTLAYOUT_H

#include "lib/Quant/Layout.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::llm {

inline constexpr llvm::StringLiteral kLayoutF32 = "f32";
/// Rows of a tile that the kernels read.
inline constexpr uint32_t kTileRows = 8;
std::string tiledLayoutName(uint32_t rows);
/// R of "tiled<rows=R>", or none for another layout.
std::optional<uint32_t> tiledLayoutRows(StringRef layout);

/// Planes of a weight `NxK` (leading dimensions count as rows) in tiles of
/// `rows` rows. The error says what does not fit.
FailureOr<sprig::quant::TensorLayout>
tiledLayout(RankedTensorType type, uint32_t rows,
            llvm::function_ref<InFlightDiagnostic()> emitError);

/// Bytes that a tensor of that type has in that layout.
FailureOr<uint64_t>
layoutBytes(RankedTensorType type, StringRef layout,
            llvm::function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_WEIGHTLAYOUT_H
