// Verifiers of products, norms and rotations.
#include "dialects/LLM/Verify.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::llm;

LogicalResult EmbeddingOp::verify() {
  auto table = getTable().getType(), result = getResult().getType();
  if (table.getRank() != 2 || result.getRank() != 2 ||
      differ(table.getDimSize(1), result.getDimSize(1))) // C1
    return emitOpError("expects a table VxD and a result TxD, but got ")
           << shapeText(table.getShape()) << " and "
           << shapeText(result.getShape());
  return success();
}

/// Shared by the norms: `eps` is not negative, `count` positive (C3, and C2 of
/// rms_scale).
static LogicalResult verifyNormNumbers(Operation *op, const APFloat &eps,
                                       std::optional<int64_t> count) {
  if (!(number(eps) >= 0)) // C3
    return op->emitOpError("expects an eps that is not negative, but got ")
           << number(eps);
  if (count && *count < 1) // C3
    return op->emitOpError("expects a positive count, but got ") << *count;
  return success();
}

/// Input and result of a norm have one shape (C1).
static LogicalResult verifyNormShapes(Operation *op, RankedTensorType input,
                                      RankedTensorType result) {
  if (input.getRank() < 1 || differ(input.getShape(), result.getShape())) // C1
    return op->emitOpError("expects the shape of the input ")
           << shapeText(input.getShape()) << ", but got "
           << shapeText(result.getShape());
  return success();
}

LogicalResult RmsNormOp::verify() {
  auto input = getInput().getType();
  if (failed(verifyNormShapes(*this, input, getResult().getType()))) // C1
    return failure();
  if (getGamma()) {
    int64_t size = getGamma().getType().getDimSize(0);
    if (differ(size, input.getShape().back()) &&
        differ(size, getRowWidth(input))) // C2
      return emitOpError("expects a gamma of ")
             << input.getShape().back() << " elements, but got " << size;
  }
  return verifyNormNumbers(*this, getEps(), getCount()); // C3
}

LogicalResult LayerNormOp::verify() {
  auto input = getInput().getType();
  if (failed(verifyNormShapes(*this, input, getResult().getType()))) // C1
    return failure();
  for (auto [name, vector] :
       {std::pair("gamma", getGamma()), std::pair("beta", getBeta())}) {
    if (!vector)
      continue;
    int64_t size = vector.getType().getDimSize(0);
    if (differ(size, input.getShape().back())) // C2
      return emitOpError("expects a ")
             << name << " of " << input.getShape().back()
             << " elements, but got " << size;
  }
  return verifyNormNumbers(*this, getEps(), getCount()); // C3
}

LogicalResult RmsScaleOp::verify() {
  if (getInput().getType().getRank() != 2) // C1
    return emitOpError("expects an input TxD, but got ")
           << shapeText(getInput().getType().getShape());
  return verifyNormNumbers(*this, getEps(), getCount()); // C2
}

//===- linear -----------------------------------------------------------===//

void LinearOp::build(OpBuilder &builder, OperationState &state, Type type,
                     Value input, Value weight, Value bias, Value residual) {
  build(builder, state, type, input, weight, /*gamma=*/Value(),
        /*row_scale=*/Value(), bias, residual);
}

/// A folded norm multiplies floats (C7 of linear, C4 of gated_linear).
static LogicalResult verifyFoldedNorm(Operation *op, Value gamma,
                                      Value rowScale, RankedTensorType input) {
  if ((gamma || rowScale) && isQuantized(input))
    return op->emitOpError(
               "expects a float input beside gamma or row_scale, but got ")
           << input;
  return success();
}

LogicalResult LinearOp::verify() {
  auto input = getInput().getType(), weight = getWeight().getType(),
       result = getResult().getType();
  int64_t rank = weight.getRank();
  if ((rank != 2 && rank != 3) || !weight.hasStaticShape()) // C1
    return emitOpError("expects a static weight NxK or HxNxK, but got ")
           << shapeText(weight.getShape());
  int64_t k = weight.getShape().back(), n = weight.getDimSize(rank - 2),
          heads = rank == 3 ? weight.getDimSize(0) : 1;
  auto takes = [&](RankedTensorType type, int64_t width) {
    if (rank == 3)
      return type.getRank() == 3 &&
             !differ(type.getShape().drop_front(), {heads, width});
    return type.getRank() >= 2 && !differ(getRowWidth(type), width);
  };
  StringRef perHead = rank == 3 ? " a head" : "";
  if (!takes(input, k)) // C2
    return emitOpError("expects rows of ")
           << k << " elements" << perHead << ", but got " << input;
  if (!takes(result, n)) // C3
    return emitOpError("expects a result of ")
           << n << " elements a row" << perHead << ", but got " << result;
  if (differ(input.getDimSize(0), result.getDimSize(0))) // C4
    return emitOpError("expects as many rows as the input's ")
           << input.getDimSize(0) << ", but got " << result.getDimSize(0);
  if (getGamma() && differ(getGamma().getType().getDimSize(0), k)) // C5
    return emitOpError("expects a gamma of ")
           << k << " elements, but got " << getGamma().getType().getDimSize(0);
  if (getBias() && differ(getBias().getType().getDimSize(0), heads * n)) // C6
    return emitOpError("expects a bias of ")
           << heads * n << " elements, but got "
           << getBias().getType().getDimSize(0);
  return verifyFoldedNorm(*this, getGamma(), getRowScale(), input); // C7
}

LogicalResult GatedLinearOp::verify() {
  auto input = getInput().getType(), gate = getGate().getType(),
       up = getUp().getType(), result = getResult().getType();
  if (gate.getRank() != 2 || !gate.hasStaticShape() ||
      gate.getShape() != up.getShape()) // C1
    return emitOpError("expects weights of equal static shape FxK, but got ")
           << shapeText(gate.getShape()) << " and " << shapeText(up.getShape());
  int64_t f = gate.getDimSize(0), k = gate.getDimSize(1);
  if (input.getRank() < 2 || differ(getRowWidth(input), k) ||
      result.getRank() != 2 ||
      differ(result.getShape(), {input.getDimSize(0), f})) // C2
    return emitOpError("expects an input Tx")
           << k << " and a result Tx" << f << ", but got " << input << " and "
           << result;
  if (getGamma() && differ(getGamma().getType().getDimSize(0), k)) // C3
    return emitOpError("expects a gamma of ")
           << k << " elements, but got " << getGamma().getType().getDimSize(0);
  return verifyFoldedNorm(*this, getGamma(), getRowScale(), input); // C4
}

LogicalResult SparseLinearOp::verify() {
  auto input = getInput().getType(), values = getValues().getType(),
       index = getIndex().getType(), result = getResult().getType();
  if (values.getRank() != 2 || !values.hasStaticShape() ||
      values.getShape() != index.getShape()) // C1
    return emitOpError(
               "expects values and index of equal static shape NxP, but got ")
           << shapeText(values.getShape()) << " and "
           << shapeText(index.getShape());
  if (input.getRank() != 2 || result.getRank() != 2 ||
      differ(result.getShape(),
             {input.getDimSize(0), values.getDimSize(0)})) // C2
    return emitOpError("expects an input TxK and a result Tx")
           << values.getDimSize(0) << ", but got " << input << " and "
           << result;
  return success();
}

//===- rope, hadamard ---------------------------------------------------===//

int64_t RopeOp::getRotatedDims() {
  return getDims() ? *getDims() : getInput().getType().getShape().back();
}

LogicalResult RopeOp::verify() {
  auto input = getInput().getType();
  if (input.getRank() != 3) // C1
    return emitOpError("expects an input TxHxE, but got ")
           << shapeText(input.getShape());
  int64_t dims = getRotatedDims(), head = input.getShape().back();
  if (dims < 2 || dims % 2 || dims > head) // C2
    return emitOpError("expects an even number of dims from 2 to ")
           << head << ", but got " << dims;
  if (static_cast<bool>(getBase()) == static_cast<bool>(getFrequencies())) // C3
    return emitOpError("expects a base or frequencies, but got ")
           << (getBase() ? "both" : "neither");
  if (getBase() && !(number(*getBase()) > 0)) // C3
    return emitOpError("expects a positive base, but got ")
           << number(*getBase());
  if (!getFrequencies()) {
    if (getLongFrom()) // C4
      return emitOpError("expects frequencies beside long_from, but got none");
    return success();
  }
  ArrayRef<int64_t> shape = getFrequencies().getType().getShape();
  SmallVector<int64_t> expected = getLongFrom()
                                      ? SmallVector<int64_t>{2, dims / 2}
                                      : SmallVector<int64_t>{dims / 2};
  if (differ(shape, expected)) // C4
    return emitOpError("expects ")
           << shapeText(expected) << " frequencies, but got "
           << shapeText(shape);
  return success();
}

LogicalResult HadamardOp::verify() {
  int64_t block = getBlock(),
          width = getInput().getType().getRank()
                      ? getInput().getType().getShape().back()
                      : 1;
  if (block < 1 || !llvm::isPowerOf2_64(block) || width % block) // C1
    return emitOpError("expects a block that is a power of two and divides ")
           << width << ", but got " << block;
  int64_t words = llvm::divideCeil(width, int64_t(64));
  if (getSigns() && static_cast<int64_t>(getSigns()->size()) != words) // C2
    return emitOpError("expects ")
           << words << " words of signs, but got " << getSigns()->size();
  return success();
}
