// Verifiers of the ops that make, read and rearrange quantised tensors.
#include "dialects/LLM/Verify.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::llm;

/// Shape of a tensor of codes of `bits`, one for `of` elements of a row, in
/// words as a layout has them; empty where nothing is known of it.
static SmallVector<int64_t> wordShape(RankedTensorType type, LayoutKind layout,
                                      int64_t bits, int64_t kept, int64_t of,
                                      RankedTensorType words) {
  bool packs = layout == LayoutKind::Packed || type.getRank() == 2;
  if (!packs || type.getRank() == 0)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  if (!ShapedType::isDynamic(shape.back()))
    shape.back() = llvm::divideCeil(shape.back(), of) * kept;
  if (layout != LayoutKind::Packed)
    std::swap(shape[0], shape[1]); // words stand for rows of K by N
  int64_t &size = layout == LayoutKind::GPTQ ? shape.front() : shape.back();
  if (!ShapedType::isDynamic(size))
    size = llvm::divideCeil(size * bits, words.getElementTypeBitWidth());
  return shape;
}

LogicalResult AssembleOp::verify() {
  auto type = getResult().getType();
  QuantizedType element = getQuantizedElement(type);
  auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding());
  bool split = layout && (layout.getKind() == LayoutKind::GPTQ ||
                          layout.getKind() == LayoutKind::AWQ ||
                          layout.getKind() == LayoutKind::Packed);
  if (!split) // C1
    return emitOpError(
               "expects a result in layout gptq, awq or packed, but got ")
           << type;
  size_t levels = element.getLevels().size();
  if (getScales().size() != levels) // C2
    return emitOpError("expects ")
           << levels << " tensors of scales, but got " << getScales().size();
  size_t offsets =
      llvm::count_if(element.getLevels(), [](const QuantLevel &level) {
        return level.offsetKind != OffsetKind::None;
      });
  if (getZeros().size() != offsets) // C3
    return emitOpError("expects ")
           << offsets << " tensors of minima or zero points, but got "
           << getZeros().size();
  bool learned =
      element.hasCodebook() && !isKnownCodebook(element.getCodebook());
  if (learned != static_cast<bool>(getCodebook())) // C4
    return emitOpError("expects ")
           << (learned ? "a" : "no") << " codebook for " << element
           << ", but got " << (learned ? "none" : "one");
  if (learned) {
    ArrayRef<int64_t> book = getCodebook().getType().getShape();
    int64_t entries = book.empty() ? 1 : book.back();
    if (differ(entries, int64_t(1) << element.getCode().bits)) // C4
      return emitOpError("expects ") << (1 << element.getCode().bits)
                                     << " entries, but got " << entries;
  }
  auto codes = getCodes().getType();
  bool trit = element.getCode().kind == CodeKind::Trit;
  int64_t bits = trit ? 2 : element.getCode().bits;
  Sparsity sparsity =
      element.isSparse() ? element.getSparsity() : Sparsity{1, 1};
  SmallVector<int64_t> expected = wordShape(type, layout.getKind(), bits,
                                            sparsity.kept, sparsity.of, codes);
  bool known = !element.hasGrid() && !expected.empty();
  if (known && differ(codes.getShape(), expected)) // C5
    return emitOpError("expects codes of shape ")
           << shapeText(expected) << ", but got "
           << shapeText(codes.getShape());
  if (element.isSparse() != static_cast<bool>(getPatterns())) // C6
    return emitOpError("expects ")
           << (element.isSparse() ? "patterns" : "no patterns") << " for "
           << element << ", but got " << (getPatterns() ? "some" : "none");
  if (getPatterns()) {
    if (layout.getKind() != LayoutKind::Packed) // C6
      return emitOpError("expects the layout packed for N:M, but got ")
             << stringifyLayoutKind(layout.getKind());
    auto patterns = getPatterns().getType();
    expected = wordShape(type, layout.getKind(), sparsity.patternBits(), 1,
                         sparsity.of, patterns);
    if (differ(patterns.getShape(), expected)) // C6
      return emitOpError("expects patterns of shape ")
             << shapeText(expected) << ", but got "
             << shapeText(patterns.getShape());
  }
  int64_t columns = type.getRank() ? type.getShape().back() : 1;
  if (getOrder() && differ(getOrder().getType().getDimSize(0), columns)) // C7
    return emitOpError("expects an order of ")
           << columns << " columns, but got "
           << getOrder().getType().getDimSize(0);
  return success();
}

LogicalResult QuantizeOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (differ(from.getShape(), to.getShape())) // C1
    return emitOpError("expects the shape of the input ")
           << shapeText(from.getShape()) << ", but got "
           << shapeText(to.getShape());
  QuantizedType element = getQuantizedElement(to);
  if (element.hasGrid() ||
      (element.hasCodebook() && !isKnownCodebook(element.getCodebook()))) // C2
    return emitOpError(
               "expects a code without a grid or learned codebook, but got ")
           << element;
  if (getClip() && (number(*getClip()) <= 0 || number(*getClip()) > 1)) // C3
    return emitOpError("expects a clip above 0 and at most 1, but got ")
           << number(*getClip());
  return success();
}

LogicalResult DequantizeOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (differ(from.getShape(), to.getShape())) // C1
    return emitOpError("expects the shape of the input ")
           << shapeText(from.getShape()) << ", but got "
           << shapeText(to.getShape());
  return success();
}

LogicalResult RelayoutOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (differ(from.getShape(), to.getShape()) ||
      from.getElementType() != to.getElementType()) // C1
    return emitOpError("expects the shape and element type of the input ")
           << from << ", but got " << to;
  return success();
}
