// From the bytes of a weight to numbers, checked against the type that the IR promises.
#ifndef SPRIG_LIB_REFERENCE_DECODE_H
#define SPRIG_LIB_REFERENCE_DECODE_H

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Math/Workers.h"
#include "lib/Reference/Tensor.h"
#include "lib/Weights/WeightSource.h"

namespace mlir::llm::reference {

/// A tensor of a file, which was checked against the type (lib/Weights/WeightTypes.h): floats for a float or `gguf`
/// quantised type, i32 for an integer type (sign- or zero-extended as the type says; signless is signed).
template <typename F>
FailureOr<Tensor> decodeTensor(WeightOp op, const WeightTensor &tensor, sprig::quant::Format format, Workers &workers);

/// Chosen rows of a tensor of floats; ids are clamped.
template <typename F>
FailureOr<Tensor> decodeRows(WeightOp op, const WeightTensor &tensor, sprig::quant::Format format,
                             ArrayRef<int32_t> ids);

/// The inline value of a weight.
template <typename F> FailureOr<Tensor> decodeInline(WeightOp op, Workers &workers);

/// A tensor that was set at run time, checked and converted to F or i32.
template <typename F> FailureOr<Tensor> convertGiven(WeightOp op, const Tensor &given);

/// A dense constant of floats or integers.
template <typename F> FailureOr<Tensor> decodeElements(Operation *op, ElementsAttr value);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_DECODE_H
