// Matrices of quantised checkpoints: the tensors that the file splits them
// into, put together by llm.assemble, with not a bit changed.
#include "lib/Import/GraphBuilder.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::llm;
using sprig::quant::Format;

static ScaleType scaleOf(Format format) {
  switch (format) {
  case Format::F16:
    return ScaleType::f16();
  case Format::BF16:
    return ScaleType::bf16();
  default:
    return ScaleType::f32();
  }
}

static QuantCode codeOf(const QuantisedMatrix &matrix) {
  const unsigned bits = unsigned(matrix.how.bits);
  if (matrix.how.isFloat)
    return matrix.how.floats == Format::F8E5M2 ? QuantCode::f8E5M2()
                                               : QuantCode::f8E4M3();
  if (matrix.zeros)
    return QuantCode::unsignedInt(bits);
  // Packed words hold the numbers with half their range added.
  return matrix.packed ? QuantCode::offsetInt(bits, 1u << (bits - 1))
                       : QuantCode::signedInt(bits);
}

static LayoutKind layoutOf(const QuantisedMatrix &matrix) {
  switch (matrix.how.method) {
  case QuantMethod::GPTQ:
    return LayoutKind::GPTQ;
  case QuantMethod::AWQ:
    return LayoutKind::AWQ;
  default:
    return LayoutKind::Packed;
  }
}

/// Scales of a matrix `NxK`, a row each, from those that rows share: copies side
/// by side, which make as many rows.
Value GraphBuilder::scalesOfRows(const QuantisedMatrix &matrix) {
  Value value = stored(*matrix.scales);
  auto type = cast<RankedTensorType>(value.getType());
  const auto shaped = [&](int64_t rows, int64_t columns) {
    return RankedTensorType::get({rows, columns}, type.getElementType());
  };
  const int64_t N = matrix.rows, all = type.getNumElements();
  if (type.getRank() != 2) // one a row, or one for all
    value = ReshapeOp::create(builder, loc, shaped(all, 1), value);
  type = cast<RankedTensorType>(value.getType());
  const int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (rows == N)
    return value;
  const int64_t times = matrix.how.rows ? matrix.how.rows : N;
  int64_t copies = 1;
  for (; copies < times; copies *= 2)
    value = ConcatOp::create(builder, loc, ValueRange{value, value}, 1);
  if (copies != times)
    value = SliceOp::create(builder, loc, value, 0, times * columns, 1);
  value =
      ReshapeOp::create(builder, loc, shaped(rows * times, columns), value);
  if (rows * times != N)
    value = SliceOp::create(builder, loc, value, 0, N, 0);
  return value;
}

Value GraphBuilder::assembled(const QuantisedMatrix &matrix, Value order) {
  // Codes and zero points are integers to the dialect, those of FP8 too.
  const auto integers = [&](const WeightTensor &tensor) -> Value {
    const unsigned bits = 8 * sprig::quant::info(tensor.format).blockBytes;
    auto type =
        RankedTensorType::get(tensor.shape, builder.getIntegerType(bits));
    return WeightOp::create(builder, loc, type, source, tensor.key);
  };
  const int64_t N = matrix.rows, K = matrix.columns;
  const bool whole = matrix.how.group == 0 || matrix.how.group >= K;
  const int64_t group = whole ? kWholeRow : matrix.how.group;
  const ScaleType scale = scaleOf(matrix.scales->format);
  const QuantLevel level =
      matrix.zeros ? QuantLevel::withOffset(
                         group, scale, OffsetKind::Zero,
                         ScaleType::unsignedInt(unsigned(matrix.how.bits)))
                   : QuantLevel::scaled(group, scale);
  MLIRContext *context = module.getContext();
  auto type = RankedTensorType::get(
      {N, K}, QuantizedType::get(context, codeOf(matrix), level),
      LayoutAttr::get(context, layoutOf(matrix)));
  Value scales = matrix.how.rows == 1 ? stored(*matrix.scales)
                                      : scalesOfRows(matrix);
  SmallVector<Value, 1> zeros;
  if (matrix.zeros)
    zeros.push_back(integers(*matrix.zeros));
  return AssembleOp::create(builder, loc, type, integers(*matrix.codes),
                            ValueRange{scales}, zeros,
                            /*codebook=*/Value(), /*patterns=*/Value(), order);
}

Value GraphBuilder::columnOrder(const QuantisedMatrix &matrix) {
  const WeightTensor *groups = matrix.groups;
  if (!groups)
    return {};
  auto type = RankedTensorType::get(groups->shape, builder.getI32Type());
  Value groupOf = WeightOp::create(builder, loc, type, source, groups->key);
  return ArgsortOp::create(builder, loc, type, groupOf);
}

bool GraphBuilder::hasMixedGroups(const WeightRef &ref) {
  return (ref.quantised && ref.quantised->groups) ||
         llvm::any_of(ref.otherQuantised, [](const QuantisedMatrix &matrix) {
           return matrix.groups != nullptr;
         });
}

Value GraphBuilder::dequantised(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  return DequantizeOp::create(
      builder, loc,
      RankedTensorType::get(type.getShape(), builder.getF32Type()), weight);
}

Value GraphBuilder::reordered(Value weight, Value order) {
  Value back = ArgsortOp::create(builder, loc, order.getType(), order);
  return GatherOp::create(builder, loc, dequantised(weight), back, 1);
}

Value GraphBuilder::inModelOrder(const QuantisedMatrix &matrix) {
  Value order = columnOrder(matrix);
  Value value = assembled(matrix, order);
  return order ? reordered(value, order) : dequantised(value);
}

Value GraphBuilder::roundedInput(Value x, const WeightRef &ref, bool apart) {
  if (!ref.quantised || ref.quantised->how.activationBits == 0)
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getRank() != 2 && !apart) { // a token's heads share a scale
    type = rowsType({type.getDimSize(1) * type.getDimSize(2)});
    x = ReshapeOp::create(builder, loc, type, x);
  }
  auto element = QuantizedType::get(
      module.getContext(),
      QuantCode::signedInt(unsigned(ref.quantised->how.activationBits)),
      QuantLevel::scaled(kWholeRow, ScaleType::f32()));
  return QuantizeOp::create(builder, loc,
                            RankedTensorType::get(type.getShape(), element), x,
                            /*clip=*/FloatAttr());
}
