// Weights and weight expressions: shapes, verifiers, text of `llm.weight`.
#include "dialects/LLM/Verify.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::llm;

//===- weight -----------------------------------------------------------===//

void WeightOp::build(OpBuilder &builder, OperationState &state, Type type,
                     StringRef source, StringRef key) {
  build(builder, state, type,
        FlatSymbolRefAttr::get(builder.getContext(), source),
        builder.getStringAttr(key), {});
}

void WeightOp::build(OpBuilder &builder, OperationState &state,
                     ElementsAttr value) {
  build(builder, state, value.getType(), {}, {}, value);
}

void WeightOp::build(OpBuilder &builder, OperationState &state, Type type,
                     ElementsAttr blob) {
  build(builder, state, type, {}, {}, blob);
}

/// `@source["key"] : type`, or `value : type`, or `blob : type as type`.
ParseResult WeightOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr source;
  Type type;
  if (succeeded(parser.parseOptionalSymbolName(source))) {
    StringAttr key;
    result.addAttribute(getSourceAttrName(result.name),
                        FlatSymbolRefAttr::get(source));
    if (parser.parseLSquare() ||
        parser.parseAttribute(key, getKeyAttrName(result.name),
                              result.attributes) ||
        parser.parseRSquare() ||
        parser.parseOptionalAttrDict(result.attributes) ||
        parser.parseColonType(type))
      return failure();
    result.addTypes(type);
    return success();
  }
  ElementsAttr value;
  if (parser.parseAttribute(value, getValueAttrName(result.name),
                            result.attributes))
    return failure();
  type = value.getType();
  if (succeeded(parser.parseOptionalKeyword("as")) && parser.parseType(type))
    return failure();
  result.addTypes(type);
  return parser.parseOptionalAttrDict(result.attributes);
}

void WeightOp::print(OpAsmPrinter &printer) {
  StringRef known[] = {getSourceAttrName(), getKeyAttrName(),
                       getValueAttrName()};
  printer << ' ';
  if (!isInline()) {
    if (getSourceAttr() && getKeyAttr()) {
      printer.printSymbolName(*getSource());
      printer << '[' << getKeyAttr() << ']';
    }
    printer.printOptionalAttrDict((*this)->getAttrs(), known);
    printer << " : " << getType();
    return;
  }
  printer << getValueAttr();
  if (getValueAttr().getType() != getType())
    printer << " as " << getType();
  printer.printOptionalAttrDict((*this)->getAttrs(), known);
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getSourceAttr() &&
      !symbols.lookupNearestSymbolFrom<SourceOp>(*this, getSourceAttr())) // C2
    return emitOpError("expects an llm.source, but got @") << *getSource();
  return success();
}

LogicalResult WeightOp::verify() {
  bool named = getSourceAttr() && getKeyAttr();
  if (named == isInline() || static_cast<bool>(getSourceAttr()) !=
                                 static_cast<bool>(getKeyAttr())) // C1
    return emitOpError(
               "expects a source and a key, or an inline value, but got ")
           << (named        ? "both"
               : isInline() ? "half of the first beside the second"
                            : "neither");
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape()) // C4
    return emitOpError("expects a static shape, but got ")
           << shapeText(type.getShape());
  if (!isInline() || getValueAttr().getType() == type)
    return success();
  auto blob = dyn_cast<RankedTensorType>(getValueAttr().getType());
  QuantizedType element = getQuantizedElement(type);
  if (!blob || !blob.getElementType().isInteger(8) || !element) // C3
    return emitOpError("expects an inline value of type ")
           << type << ", but got " << getValueAttr().getType();
  auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding());
  const GGUFFormat *format = lookupGGUF(element);
  if (!format || !layout || layout.getKind() != LayoutKind::GGUF)
    return success();
  int64_t row = type.getRank() == 0 ? 1 : type.getShape().back();
  int64_t bytes =
      row == 0 ? 0
               : type.getNumElements() / row *
                     llvm::divideCeil(row, int64_t(format->blockElements)) *
                     format->blockBytes;
  if (blob.getNumElements() != bytes) // C3
    return emitOpError("expects ") << bytes << " bytes for " << type
                                   << ", but got " << blob.getNumElements();
  return success();
}

//===- slice, concat, gather, scale_axis, transpose, reshape -------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t axis = adaptor.getAxis();
  if (!type || axis < 0 || axis >= type.getRank()) {
    types.push_back(
        adaptor.getInput().getType()); // the verifier says what is wrong
    return success();
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = std::max<int64_t>(0, adaptor.getEnd() - adaptor.getBegin());
  types.push_back(withShape(type, shape));
  return success();
}

LogicalResult SliceOp::verify() {
  auto type = getInput().getType();
  int64_t axis = getAxis(), begin = getBegin(), end = getEnd();
  if (failed(verifyAxis(*this, axis, type))) // C1
    return failure();
  int64_t size = type.getDimSize(axis);
  if (begin < 0 || begin >= end ||
      (!ShapedType::isDynamic(size) && end > size)) // C2
    return emitOpError("expects 0 <= begin < end <= ")
           << shapeText(size) << ", but got " << begin << " to " << end;
  int64_t block = cutGranularity(type.getElementType());
  if (axis + 1 == type.getRank() &&
      (begin % block || (end % block && end != size))) // C3
    return emitOpError("expects a cut at multiples of ")
           << block << ", but got " << begin << " to " << end;
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty()) // C1
    return failure();
  auto type = dyn_cast<RankedTensorType>(adaptor.getInputs().front().getType());
  int64_t axis = adaptor.getAxis();
  if (!type || axis < 0 || axis >= type.getRank()) {
    types.push_back(adaptor.getInputs().front().getType());
    return success();
  }
  SmallVector<int64_t> shape(type.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    auto other = dyn_cast<RankedTensorType>(input.getType());
    if (!other || other.getRank() != type.getRank())
      continue;
    int64_t size = other.getDimSize(axis);
    bool dynamic =
        ShapedType::isDynamic(size) || ShapedType::isDynamic(shape[axis]);
    shape[axis] = dynamic ? ShapedType::kDynamic : shape[axis] + size;
  }
  types.push_back(withShape(type, shape));
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty()) // C1
    return emitOpError("expects at least one input, but got none");
  auto first = cast<RankedTensorType>(getInputs().front().getType());
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, first))) // C2
    return failure();
  int64_t block =
      axis + 1 == first.getRank() ? cutGranularity(first.getElementType()) : 1;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> shape(type.getShape()), expected(first.getShape());
    if (shape.size() == expected.size())
      shape[axis] = expected[axis];
    if (type.getElementType() != first.getElementType() ||
        type.getEncoding() != first.getEncoding() ||
        differ(shape, expected)) // C3
      return emitOpError("expects inputs that differ along axis ")
             << axis << " alone, but got " << first << " and " << type;
    if (i + 1 < getInputs().size() && type.getDimSize(axis) % block) // C4
      return emitOpError("expects inputs of whole groups of ")
             << block << ", but got " << type.getDimSize(axis);
  }
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getInput().getType());
  auto index = dyn_cast<RankedTensorType>(adaptor.getIndex().getType());
  int64_t axis = adaptor.getAxis();
  if (!type || !index || index.getRank() != 1 || axis < 0 ||
      axis >= type.getRank()) {
    types.push_back(adaptor.getInput().getType());
    return success();
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = index.getDimSize(0);
  types.push_back(withShape(type, shape));
  return success();
}

LogicalResult GatherOp::verify() {
  auto type = getInput().getType();
  if (failed(verifyAxis(*this, getAxis(), type))) // C1
    return failure();
  if (getAxis() + 1 == type.getRank() &&
      cutGranularity(type.getElementType()) != 1) // C2
    return emitOpError("expects a tensor without groups along axis ")
           << getAxis() << ", but got " << type.getElementType();
  return success();
}

LogicalResult ScaleAxisOp::verify() {
  auto type = getInput().getType();
  if (failed(verifyAxis(*this, getAxis(), type))) // C1
    return failure();
  int64_t slices = type.getDimSize(getAxis()),
          factors = getFactors().getType().getDimSize(0);
  if (differ(slices, factors)) // C2
    return emitOpError("expects one factor a slice, but got ")
           << factors << " for " << slices;
  return success();
}

LogicalResult OffsetOp::verify() {
  auto type = getInput().getType(), result = getResult().getType();
  if (differ(type.getShape(), result.getShape())) // C1
    return emitOpError("expects a result of the input's shape, but got ")
           << result << " for " << type;
  if (!result.getElementType().isF32()) // C2
    return emitOpError("expects a result of f32, but got ") << result;
  return success();
}

static bool isPermutation(ArrayRef<int64_t> order, int64_t rank) {
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  return llvm::equal(sorted, llvm::seq<int64_t>(0, rank));
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(adaptor.getInput().getType());
  if (!type || !isPermutation(adaptor.getOrder(), type.getRank())) {
    types.push_back(adaptor.getInput().getType());
    return success();
  }
  types.push_back(withShape(
      type, llvm::map_to_vector(adaptor.getOrder(), [&](int64_t axis) {
        return type.getDimSize(axis);
      })));
  return success();
}

LogicalResult TransposeOp::verify() {
  auto type = getInput().getType();
  if (!isPermutation(getOrder(), type.getRank())) // C1
    return emitOpError("expects a permutation of ")
           << type.getRank() << " dimensions, but got [" << getOrder() << ']';
  if (isQuantized(type) && getOrder().back() + 1 != type.getRank()) // C2
    return emitOpError("expects the last dimension of a quantised tensor to "
                       "stay last, but got [")
           << getOrder() << ']';
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  // Rows of activations are as many as the step has tokens.
  const bool tokens = from.getRank() > 0 && to.getRank() > 0 &&
                      from.isDynamicDim(0) && to.isDynamicDim(0);
  ArrayRef<int64_t> fromRow = from.getShape().drop_front(tokens),
                    toRow = to.getShape().drop_front(tokens);
  if (ShapedType::isDynamicShape(fromRow) ||
      ShapedType::isDynamicShape(toRow) ||
      ShapedType::getNumElements(fromRow) !=
          ShapedType::getNumElements(toRow)) // C1
    return emitOpError("expects static shapes of as many elements, but got ")
           << shapeText(from.getShape()) << " and " << shapeText(to.getShape());
  if (from.getElementType() != to.getElementType() ||
      from.getEncoding() != to.getEncoding()) // C2
    return emitOpError("expects the same element type and layout, but got ")
           << from << " and " << to;
  bool sameRow = from.getRank() && to.getRank() &&
                 from.getShape().back() == to.getShape().back();
  if (isQuantized(from) && !sameRow) // C3
    return emitOpError("expects a quantised tensor to keep its last dimension, "
                       "but got ")
           << shapeText(from.getShape()) << " and " << shapeText(to.getShape());
  return success();
}
