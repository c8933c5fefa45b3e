// Verifiers of elementwise ops, choices of rows, and experts.
#include "dialects/LLM/Verify.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::llm;

static LogicalResult verifySameShape(Operation *op, RankedTensorType input,
                                     RankedTensorType result) {
  if (differ(input.getShape(), result.getShape())) // C1
    return op->emitOpError("expects the shape of the input ")
           << shapeText(input.getShape()) << ", but got "
           << shapeText(result.getShape());
  return success();
}

LogicalResult ActivationOp::verify() {
  return verifySameShape(*this, getInput().getType(), getResult().getType());
}

LogicalResult GatedActivationOp::verify() {
  return verifySameShape(*this, getGate().getType(), getResult().getType());
}

LogicalResult CosineGateOp::verify() {
  ArrayRef<int64_t> query = getQuery().getType().getShape(),
                    value = getValue().getType().getShape();
  if (query.size() != 3 || value.size() != 2 || query[0] != value[0] ||
      query[1] * query[2] != value[1]) // C1
    return emitOpError("expects heads TxHxE and rows TxH*E, but got ")
           << shapeText(query) << " and " << shapeText(value);
  if (!(number(getEps()) > 0)) // C2
    return emitOpError("expects a positive eps, but got ") << number(getEps());
  return success();
}

LogicalResult MultiplyOp::verify() {
  ArrayRef<int64_t> left = getLhs().getType().getShape(),
                    right = getRhs().getType().getShape();
  bool sameRank = left.size() == right.size();
  bool oneARow = sameRank && !right.empty() && right.back() == 1 &&
                 !differ(left.drop_back(), right.drop_back());
  if (differ(left, right) && !oneARow) // C1
    return emitOpError("expects a factor of shape ")
           << shapeText(left) << " or with 1 in its last dimension, but got "
           << shapeText(right);
  return success();
}

LogicalResult SoftcapOp::verify() {
  if (!(number(getCap()) > 0)) // C1
    return emitOpError("expects a positive cap, but got ") << number(getCap());
  return success();
}

LogicalResult SelectRowsOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto input = dyn_cast<RankedTensorType>(adaptor.getInput().getType());
  auto rows = dyn_cast<RankedTensorType>(adaptor.getRows().getType());
  if (!input || !rows || input.getRank() < 1 || rows.getRank() != 1)
    return failure();
  SmallVector<int64_t> shape(input.getShape());
  shape[0] = rows.getDimSize(0);
  types.push_back(withShape(input, shape));
  return success();
}

//===- experts ----------------------------------------------------------===//

LogicalResult RouteOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto logits = dyn_cast<RankedTensorType>(adaptor.getLogits().getType());
  if (!logits || logits.getRank() < 1)
    return failure();
  Builder builder(context);
  int64_t shape[] = {logits.getDimSize(0), adaptor.getTop()};
  types.push_back(RankedTensorType::get(shape, builder.getI32Type()));
  types.push_back(RankedTensorType::get(shape, builder.getF32Type()));
  return success();
}

LogicalResult RouteOp::verify() {
  auto logits = getLogits().getType();
  if (logits.getRank() != 2) // C1
    return emitOpError("expects logits TxX, but got ")
           << shapeText(logits.getShape());
  int64_t experts = logits.getDimSize(1), top = getTop();
  if (top < 1 || top > experts) // C2
    return emitOpError("expects to choose 1 to ")
           << experts << " experts, but got " << top;
  if (getBias() && differ(getBias().getType().getDimSize(0), experts)) // C3
    return emitOpError("expects a bias of ")
           << experts << " elements, but got "
           << getBias().getType().getDimSize(0);
  if (static_cast<bool>(getGroups()) != static_cast<bool>(getTopGroups())) // C4
    return emitOpError("expects groups and top_groups together, but got only ")
           << (getGroups() ? "groups" : "top_groups");
  if (getByBest() && !getGroups()) // C4
    return emitOpError("expects groups for by_best, but got none");
  if (!getGroups())
    return success();
  int64_t groups = *getGroups(), chosen = *getTopGroups();
  if (groups < 1 || experts % groups || chosen < 1 || chosen > groups) // C4
    return emitOpError("expects groups that divide ")
           << experts << ", of which some are chosen, but got " << chosen
           << " of " << groups;
  return success();
}

LogicalResult AdapterChoiceOp::verify() {
  const int64_t rows = getPositions().getType().getDimSize(0);
  const int64_t one[] = {rows, 1};
  if (differ(getIds().getType().getShape(), one) ||
      differ(getGain().getType().getShape(), one)) // C1
    return emitOpError("expects results Tx1, but got ")
           << shapeText(getIds().getType().getShape()) << " and "
           << shapeText(getGain().getType().getShape());
  if (const int64_t count = getGains().getType().getDimSize(0); count < 1) // C2
    return emitOpError("expects at least one gain, but got ") << count;
  return success();
}

LogicalResult ExpertLinearOp::verify() {
  auto input = getInput().getType(), ids = getIds().getType(),
       weight = getWeight().getType(), result = getResult().getType();
  if (weight.getRank() != 3 || !weight.hasStaticShape()) // C1
    return emitOpError("expects a static weight XxNxK, but got ")
           << shapeText(weight.getShape());
  int64_t experts = weight.getDimSize(0), n = weight.getDimSize(1),
          k = weight.getDimSize(2);
  if (ids.getRank() != 2) // C2
    return emitOpError("expects ids Txk, but got ")
           << shapeText(ids.getShape());
  int64_t rows = ids.getDimSize(0), chosen = ids.getDimSize(1);
  // Of more than two dimensions the later ones may be any that split a row.
  auto isRow = [&](RankedTensorType type, int64_t elements) {
    return type.getRank() >= 2 && !differ(type.getDimSize(0), rows) &&
           !ShapedType::isDynamicShape(type.getShape().drop_front()) &&
           ShapedType::getNumElements(type.getShape().drop_front()) == elements;
  };
  bool own = !differ(input.getShape(), {rows, chosen, k});
  if (!own && !isRow(input, k)) // C3
    return emitOpError("expects an input Tx")
           << k << " or Tx" << chosen << 'x' << k << ", but got " << input;
  SmallVector<int64_t> expected = {rows, n};
  if (!getCombine())
    expected.insert(expected.begin() + 1, chosen);
  if (differ(result.getShape(), expected) &&
      !(getCombine() && isRow(result, n))) // C4
    return emitOpError("expects a result ")
           << shapeText(expected) << ", but got "
           << shapeText(result.getShape());
  if (getCombine() &&
      differ(getCombine().getType().getShape(), ids.getShape())) // C5
    return emitOpError("expects weights of shape ")
           << shapeText(ids.getShape()) << ", but got "
           << shapeText(getCombine().getType().getShape());
  if (getBias() && differ(getBias().getType().getShape(), {experts, n})) // C6
    return emitOpError("expects a bias ")
           << experts << 'x' << n << ", but got "
           << shapeText(getBias().getType().getShape());
  if (getResidual() && !getCombine()) // C7
    return emitOpError("expects combine beside a residual, but got none");
  if (getResidual() && getResidual().getType() != result) // C7
    return emitOpError("expects a residual of type ")
           << result << ", but got " << getResidual().getType();
  return success();
}
