// Sampling and trees of draft tokens.
#include "dialects/LLM/Verify.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::llm;

static constexpr int64_t kMaxTree = 64;

LogicalResult SampleOp::verify() {
  if (getLogits().getType().getRank() != 2) // C1
    return emitOpError("expects logits TxV, but got ")
           << shapeText(getLogits().getType().getShape());
  return success();
}

LogicalResult TreeMaskOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  Type parents = adaptor.getParents().getType();
  if (!isa<RankedTensorType>(parents))
    return failure();
  types.push_back(maskType(parents));
  types.push_back(rowVector(parents, "i32"));
  return success();
}

LogicalResult TreeMaskOp::verify() {
  int64_t nodes = getParents().getType().getDimSize(0);
  if (nodes > kMaxTree) // C1
    return emitOpError("expects at most 64 nodes, but got ") << nodes;
  DenseIntElementsAttr parents;
  auto weight = getParents().getDefiningOp<WeightOp>();
  if (weight && weight.isInline())
    parents = dyn_cast<DenseIntElementsAttr>(weight.getValueAttr());
  else if (!matchPattern(getParents(), m_Constant(&parents)))
    return success();
  if (!parents)
    return success();
  for (auto [node, parent] : llvm::enumerate(parents.getValues<int32_t>()))
    if (parent < -1 || parent >= static_cast<int32_t>(node)) // C2
      return emitOpError("expects the parent of node ")
             << node << " to come before it, but got " << parent;
  return success();
}

LogicalResult TreeVerifyOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Type logits = adaptor.getLogits().getType();
  if (!isa<RankedTensorType>(logits))
    return failure();
  types.push_back(rowVector(logits, "i32"));
  types.append(2, i32Vector(context, 1));
  return success();
}

LogicalResult TreeVerifyOp::verify() {
  auto logits = getLogits().getType();
  if (logits.getRank() != 2 || logits.getDimSize(0) > kMaxTree) // C1
    return emitOpError("expects logits TxV of at most 64 nodes, but got ")
           << shapeText(logits.getShape());
  return success();
}
