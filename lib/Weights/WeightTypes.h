// Between the types of the IR and the formats of files.
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTTYPES_H
#define SPRIG_LIB_WEIGHTS_WEIGHTTYPES_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightSource.h"

namespace mlir::llm {

/// Bits that a number of this type takes where it is stored, scales included.
double storedBits(Type element);

/// The format that holds tensors of this type as they lie in a file: floats,
/// integers of 8 to 64 bits, and quantised types of GGUF with the layout `gguf`
/// or none. None for all other types.
std::optional<sprig::quant::Format> storageFormatOf(RankedTensorType type);

/// The name of codebooks in types whose entries are an operand of `llm.assemble`.
inline constexpr llvm::StringLiteral kLearnedCodebook = "learned";

/// The format of groups (lib/Quant/Affine.h) that holds the numbers of a
/// quantised type whatever its layout, K being a multiple of 32; none for types
/// of several levels, known codebooks and the like.
std::optional<sprig::quant::Format> affineFormatOf(RankedTensorType type);

/// The format in which a weight expression of this type reaches a device: that
/// of the file, or of groups where the file has it in parts.
std::optional<sprig::quant::Format> deviceFormatOf(RankedTensorType type);

/// Checks that a tensor of a file is what `type` promises, and gives the format
/// to read it by. An integer type takes any stored type of its width (FP8
/// codes are declared as i8); a quantised type takes its blocks as bytes, too:
/// `NxK` in `NxBYTES` of U8. Errors are on `op`.
FailureOr<sprig::quant::Format> checkPromise(Operation *op,
                                             RankedTensorType type,
                                             const WeightTensor &tensor,
                                             StringRef file);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_WEIGHTTYPES_H
