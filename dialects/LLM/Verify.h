// Small questions that verifiers ask about shapes.
#ifndef SPRIG_DIALECTS_LLM_VERIFY_H
#define SPRIG_DIALECTS_LLM_VERIFY_H

#include "dialects/LLM/LLM.h"

namespace mlir::llm {

/// True when two sizes are known and not equal.
inline bool differ(int64_t left, int64_t right) {
  return left != right && !ShapedType::isDynamic(left) &&
         !ShapedType::isDynamic(right);
}

inline bool differ(ArrayRef<int64_t> left, ArrayRef<int64_t> right) {
  if (left.size() != right.size())
    return true;
  for (auto [l, r] : llvm::zip_equal(left, right))
    if (differ(l, r))
      return true;
  return false;
}

/// A shape for a message: `4x?x8`.
std::string shapeText(ArrayRef<int64_t> shape);

/// The number of an f32 attribute.
inline float number(const APFloat &value) { return value.convertToFloat(); }

/// `axis` is a dimension of `type`, or an error on `op`.
LogicalResult verifyAxis(Operation *op, int64_t axis, RankedTensorType type);

/// Width that cuts along the last axis have to be a multiple of: the outermost
/// group, 1 for plain numbers.
int64_t cutGranularity(Type elementType);

/// `type` with another shape, the element type and layout kept.
inline RankedTensorType withShape(RankedTensorType type,
                                  ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_VERIFY_H
