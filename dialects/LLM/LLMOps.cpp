// The generated part of all ops, and what their verifiers share.
#include "dialects/LLM/Assembly.h"
#include "dialects/LLM/Verify.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::llm;

#define GET_OP_CLASSES
#include "dialects/LLM/LLMOps.cpp.inc"

void LLMDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/LLM/LLMOps.cpp.inc"
      >();
}

Type llm::rowVector(Type rows, StringRef element) {
  auto type = dyn_cast<RankedTensorType>(rows);
  if (!type)
    return {};
  int64_t size =
      type.getRank() == 0 ? ShapedType::kDynamic : type.getDimSize(0);
  Builder builder(rows.getContext());
  return RankedTensorType::get({size}, element == "i32"
                                           ? Type(builder.getI32Type())
                                           : Type(builder.getF32Type()));
}

Type llm::i32Vector(MLIRContext *context, int64_t length) {
  return RankedTensorType::get({length}, IntegerType::get(context, 32));
}

Type llm::maskType(Type rows) {
  auto vector = dyn_cast_if_present<RankedTensorType>(rowVector(rows, "i32"));
  if (!vector)
    return {};
  return RankedTensorType::get({vector.getDimSize(0), 2},
                               vector.getElementType());
}

QuantizedType llm::getQuantizedElement(Type tensor) {
  auto shaped = dyn_cast<ShapedType>(tensor);
  return shaped ? dyn_cast<QuantizedType>(shaped.getElementType())
                : QuantizedType();
}

bool llm::isQuantized(Type tensor) {
  return static_cast<bool>(getQuantizedElement(tensor));
}

int64_t llm::getRowWidth(Type tensor) {
  int64_t width = 1;
  for (int64_t size : cast<RankedTensorType>(tensor).getShape().drop_front()) {
    if (ShapedType::isDynamic(size))
      return ShapedType::kDynamic;
    width *= size;
  }
  return width;
}

bool llm::isKnownCodebook(StringRef name) {
  return name == "iq4nl" || name == "nf4";
}

std::string llm::shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shape, stream,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          stream << '?';
        else
          stream << size;
      },
      "x");
  return text;
}

LogicalResult llm::verifyAxis(Operation *op, int64_t axis,
                              RankedTensorType type) {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return op->emitOpError("expects an axis below the rank ")
         << type.getRank() << ", but got " << axis;
}

int64_t llm::cutGranularity(Type elementType) {
  auto quantized = dyn_cast<QuantizedType>(elementType);
  if (!quantized)
    return 1;
  int64_t block = quantized.blockElements();
  // A whole-row scale survives a cut; what is left is the piece a code or
  // pattern spans.
  if (block != kWholeRow)
    return block;
  ArrayRef<QuantLevel> levels = quantized.getLevels();
  int64_t piece =
      std::max<int64_t>(quantized.getCode().dim,
                        quantized.isSparse() ? quantized.getSparsity().of : 1);
  return levels.size() > 1 ? levels[levels.size() - 2].group : piece;
}
