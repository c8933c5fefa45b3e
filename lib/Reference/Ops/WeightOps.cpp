// Weights, rearrangements of weights and activations, and the ways in and out of quantised types. A quantised tensor
// is held as the numbers it means, so slicing one is slicing numbers.
#include "lib/Reference/Interpreter.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

template <typename F> static LogicalResult evaluateWeight(const OpContext<F> &context) {
  auto op = cast<WeightOp>(context.op);
  FailureOr<Tensor> value = context.interpreter.weights.load(op);
  if (failed(value))
    return failure();
  context.set(op.getResult(), *value);
  return success();
}

/// Calls `function` with the element type of the tensor: F or int32_t.
template <typename F, typename Function> static void visit(const Tensor &tensor, Function function) {
  if (tensor.is<int32_t>())
    function(int32_t());
  else
    function(F());
}

/// A tensor as [outer, size of the axis, inner].
struct AxisView {
  size_t outer = 1, size, inner = 1;
  AxisView(ArrayRef<int64_t> shape, int64_t axis) : size(size_t(shape[size_t(axis)])) {
    for (int64_t before : shape.take_front(size_t(axis)))
      outer *= size_t(before);
    for (int64_t after : shape.drop_front(size_t(axis) + 1))
      inner *= size_t(after);
  }
};

/// result[…, i, …] = input[…, index(i), …] for `count` values of i.
template <typename F, typename Index>
static void take(const OpContext<F> &context, const Tensor &x, int64_t axis, size_t count, Index index) {
  const AxisView view(x.shape(), axis);
  SmallVector<int64_t> shape(x.shape());
  shape[size_t(axis)] = int64_t(count);
  visit<F>(x, [&](auto kind) {
    using E = decltype(kind);
    E *y;
    Tensor result = Tensor::make<E>(shape, y);
    for (size_t o = 0; o < view.outer; ++o)
      for (size_t i = 0; i < count; ++i, y += view.inner)
        llvm::copy(x.as<E>().slice((o * view.size + index(i)) * view.inner, view.inner), y);
    context.set(context.op->getResult(0), result);
  });
}

template <typename F> static LogicalResult evaluateSlice(const OpContext<F> &context) {
  auto op = cast<SliceOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const int64_t end = std::min<int64_t>(op.getEnd(), x.shape()[size_t(op.getAxis())]);
  if (end < int64_t(op.getBegin()))
    return op.emitOpError("expects an end after ") << op.getBegin() << ", but got " << end;
  take<F>(context, x, op.getAxis(), size_t(end - int64_t(op.getBegin())),
          [&](size_t i) { return i + size_t(op.getBegin()); });
  return success();
}

template <typename F> static LogicalResult evaluateGather(const OpContext<F> &context) {
  auto op = cast<GatherOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<int32_t> index = context.ints(op.getIndex());
  const int64_t size = x.shape()[size_t(op.getAxis())];
  for (int32_t i : index)
    if (i < 0 || i >= size)
      return op.emitOpError("expects an index from 0 to ") << size - 1 << ", but got " << i;
  take<F>(context, x, op.getAxis(), index.size(), [&](size_t i) { return size_t(index[i]); });
  return success();
}

template <typename F> static LogicalResult evaluateConcat(const OpContext<F> &context) {
  auto op = cast<ConcatOp>(context.op);
  const size_t axis = size_t(op.getAxis());
  SmallVector<int64_t> shape(context.operands.front().shape());
  shape[axis] = 0;
  for (const Tensor &part : context.operands)
    shape[axis] += part.shape()[axis];
  const AxisView whole(shape, int64_t(axis));
  visit<F>(context.operands.front(), [&](auto kind) {
    using E = decltype(kind);
    E *y;
    Tensor result = Tensor::make<E>(shape, y);
    for (size_t o = 0; o < whole.outer; ++o)
      for (const Tensor &part : context.operands) {
        const size_t run = size_t(part.shape()[axis]) * whole.inner;
        llvm::copy(part.as<E>().slice(o * run, run), y);
        y += run;
      }
    context.set(op.getResult(), result);
  });
  return success();
}

template <typename F> static LogicalResult evaluateScaleAxis(const OpContext<F> &context) {
  auto op = cast<ScaleAxisOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<F> factors = context.floats(op.getFactors()), numbers = x.as<F>();
  const AxisView view(x.shape(), op.getAxis());
  F *y = context.make(op.getResult(), x.rows());
  for (size_t i = 0; i < numbers.size(); ++i)
    y[i] = numbers[i] * factors[i / view.inner % view.size];
  return success();
}

template <typename F> static LogicalResult evaluateOffset(const OpContext<F> &context) {
  auto op = cast<OffsetOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<F> numbers = x.as<F>();
  F *y = context.make(op.getResult(), x.rows());
  for (size_t i = 0; i < numbers.size(); ++i)
    y[i] = numbers[i] + F(op.getAmount().convertToFloat());
  return success();
}

template <typename F> static LogicalResult evaluateTranspose(const OpContext<F> &context) {
  auto op = cast<TransposeOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<int64_t> order = op.getOrder();
  const size_t rank = order.size();
  // Of each dimension of the result: its size, and how far apart its neighbours are in the input.
  SmallVector<int64_t> shape(rank), strides(rank), own(rank, 1);
  for (size_t d = rank; d-- > 1;)
    own[d - 1] = own[d] * x.shape()[d];
  for (size_t d = 0; d < rank; ++d)
    shape[d] = x.shape()[size_t(order[d])], strides[d] = own[size_t(order[d])];
  visit<F>(x, [&](auto kind) {
    using E = decltype(kind);
    E *y;
    Tensor result = Tensor::make<E>(shape, y);
    SmallVector<int64_t> at(rank, 0);
    int64_t from = 0;
    for (int64_t i = 0, count = x.elements(); i < count; ++i) {
      y[i] = x.as<E>()[size_t(from)];
      for (size_t d = rank; d-- > 0;) { // the next place of the result, in row-major order
        from += strides[d];
        if (++at[d] < shape[d])
          break;
        from -= strides[d] * shape[d];
        at[d] = 0;
      }
    }
    context.set(op.getResult(), result);
  });
  return success();
}

template <typename F> static LogicalResult evaluateArgsort(const OpContext<F> &context) {
  auto op = cast<ArgsortOp>(context.op);
  const ArrayRef<int32_t> keys = context.ints(op.getInput());
  int32_t *order;
  Tensor result = Tensor::make<int32_t>({int64_t(keys.size())}, order);
  std::iota(order, order + keys.size(), 0);
  std::sort(order, order + keys.size(),
            [&](int32_t left, int32_t right) { return std::pair(keys[left], left) < std::pair(keys[right], right); });
  context.set(op.getResult(), result);
  return success();
}

/// The same numbers under the shape of the result: reshape, dequantise, relayout. Also quantise, before the interpreter
/// rounds the result to its type.
template <typename F> static LogicalResult evaluateSameNumbers(const OpContext<F> &context) {
  const Tensor &x = context.operands.front();
  SmallVector<int64_t> shape(cast<RankedTensorType>(context.op->getResult(0).getType()).getShape());
  if (!shape.empty() && ShapedType::isDynamic(shape.front()))
    shape.front() = x.rows();
  context.set(context.op->getResult(0), x.reshaped(shape));
  return success();
}

template <typename F> void reference::addWeightOps(OpTable<F> &table) {
  table[TypeID::get<WeightOp>()] = {evaluateWeight<F>};
  table[TypeID::get<SliceOp>()] = {evaluateSlice<F>};
  table[TypeID::get<GatherOp>()] = {evaluateGather<F>};
  table[TypeID::get<ConcatOp>()] = {evaluateConcat<F>};
  table[TypeID::get<ScaleAxisOp>()] = {evaluateScaleAxis<F>};
  table[TypeID::get<OffsetOp>()] = {evaluateOffset<F>};
  table[TypeID::get<ArgsortOp>()] = {evaluateArgsort<F>};
  table[TypeID::get<TransposeOp>()] = {evaluateTranspose<F>};
  table[TypeID::get<ReshapeOp>()] = {evaluateSameNumbers<F>};
  table[TypeID::get<DequantizeOp>()] = {evaluateSameNumbers<F>};
  table[TypeID::get<RelayoutOp>()] = {evaluateSameNumbers<F>};
  table[TypeID::get<QuantizeOp>()] = {evaluateSameNumbers<F>, true};
}
template void reference::addWeightOps<float>(OpTable<float> &);
template void reference::addWeightOps<double>(OpTable<double> &);
