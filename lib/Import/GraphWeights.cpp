// Weights of the graph: tensors of the file, and the expressions over them.
#include "lib/Import/GraphBuilder.h"

#include "dialects/LLM/GGUFFormats.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::llm;

/// Quantised types say how their bytes lie; floats lie in one way only.
static RankedTensorType fileType(MLIRContext *context,
                                 const WeightTensor &tensor) {
  Type element = getGGUFType(context, *lookupGGUF(uint32_t(tensor.format)));
  Attribute layout;
  if (isa<QuantizedType>(element))
    layout = LayoutAttr::get(context, LayoutKind::GGUF);
  return RankedTensorType::get(tensor.shape, element, layout);
}

Value GraphBuilder::stored(const WeightTensor &tensor) {
  return WeightOp::create(builder, loc, fileType(module.getContext(), tensor),
                          source, tensor.key);
}

/// The same element type and layout under another shape.
static RankedTensorType reshaped(RankedTensorType type,
                                 ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

Value GraphBuilder::weight(const WeightRef &ref, Value order) {
  const bool mixed = !order && hasMixedGroups(ref);
  if (mixed && !saidMixed) {
    saidMixed = true;
    emitWarning(loc) << "columns of experts' groups are mixed (g_idx of '"
                     << ref.tensor->key
                     << "'), so that experts are read as f32, at four bytes a "
                        "number";
  }
  const auto whole = [&](const QuantisedMatrix &matrix) {
    return mixed ? inModelOrder(matrix) : assembled(matrix, order);
  };
  Value value = ref.quantised ? whole(*ref.quantised) : stored(*ref.tensor);
  auto type = cast<RankedTensorType>(value.getType());
  if (!ref.others.empty() || !ref.otherQuantised.empty()) {
    SmallVector<Value> all{value};
    for (const WeightTensor *other : ref.others)
      all.push_back(stored(*other));
    for (const QuantisedMatrix &other : ref.otherQuantised)
      all.push_back(whole(other));
    const int64_t N = type.getDimSize(0), K = type.getDimSize(1);
    const auto X = int64_t(all.size());
    value = ConcatOp::create(builder, loc, all, 0);
    type = reshaped(type, {X, N, K});
    value = ReshapeOp::create(builder, loc, type, value);
  }
  // A matrix that is split lies as NxK whatever the others do.
  if (ref.transposed && !ref.quantised)
    value = TransposeOp::create(builder, loc, value, ArrayRef<int64_t>{1, 0});
  if (ref.oneRow) {
    type = reshaped(type, {1, type.getNumElements()});
    return ReshapeOp::create(builder, loc, type, value);
  }
  if (ref.turnedHeads) {
    // Blocks of quantised numbers cannot be turned.
    if (isa<QuantizedType>(type.getElementType()))
      value = DequantizeOp::create(
          builder, loc,
          RankedTensorType::get(type.getShape(), builder.getF32Type()), value);
    value =
        TransposeOp::create(builder, loc, value, ArrayRef<int64_t>{0, 2, 1});
    type = cast<RankedTensorType>(value.getType());
  }
  // Heads that are stacked are rows of one matrix.
  if (ref.heads && type.getRank() == 3) {
    type = reshaped(type, {type.getDimSize(0) * type.getDimSize(1),
                           type.getDimSize(2)});
    return ReshapeOp::create(builder, loc, type, value);
  }
  if (ref.heads)
    return headRows(value, ref);
  // Rows of a matrix, of each matrix of a stack, or of a vector.
  if (ref.begin != ref.end)
    value = SliceOp::create(builder, loc, value, ref.begin, ref.end,
                            std::max<int64_t>(0, type.getRank() - 2));
  if (ref.normalised) // to length 1, as torch.nn.functional.normalize does
    value = RmsNormOp::create(builder, loc,
                              RankedTensorType::get(
                                  cast<RankedTensorType>(value.getType())
                                      .getShape(),
                                  builder.getF32Type()),
                              value,
                              /*gamma=*/Value(), number(1e-24),
                              builder.getI64IntegerAttr(1));
  if (ref.offset != 0.0)
    value =
        OffsetOp::create(builder, loc,
                         RankedTensorType::get(
                             cast<RankedTensorType>(value.getType()).getShape(),
                             builder.getF32Type()),
                         value, number(ref.offset));
  return value;
}

Value GraphBuilder::matrix(Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  if (!options.explicitDequantize || !isa<QuantizedType>(type.getElementType()))
    return stored;
  return DequantizeOp::create(
      builder, loc,
      RankedTensorType::get(type.getShape(), builder.getF32Type()), stored);
}
