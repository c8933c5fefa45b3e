// Nonlinearities, sums, factors, and choices of rows.
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Rows.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// Maps `function(i)` over the elements of the result of `op`, whose rows are those of its first operand.
template <typename F, typename Function> static LogicalResult map(const OpContext<F> &context, Function function) {
  const Tensor &first = context.operands.front();
  F *y = context.make(context.op->getResult(0), first.rows());
  context.workers().ranges(size_t(first.elements()), 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      y[i] = function(i);
  });
  return success();
}

template <typename F> static LogicalResult evaluateActivation(const OpContext<F> &context) {
  auto op = cast<ActivationOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  F *y = context.make(op.getResult(), x.rows());
  activate<F>(context.workers(), Nonlinearity(uint32_t(op.getKind())), x.as<F>().data(), nullptr, y,
              size_t(x.elements()));
  return success();
}

template <typename F> static LogicalResult evaluateGatedActivation(const OpContext<F> &context) {
  auto op = cast<GatedActivationOp>(context.op);
  const Tensor &gate = context.get(op.getGate());
  F *y = context.make(op.getResult(), gate.rows());
  activate<F>(context.workers(), Nonlinearity(uint32_t(op.getKind())), gate.as<F>().data(),
              context.floats(op.getUp()).data(), y, size_t(gate.elements()));
  return success();
}

template <typename F> static LogicalResult evaluateAdd(const OpContext<F> &context) {
  const ArrayRef<F> a = context.operands[0].template as<F>(), b = context.operands[1].template as<F>();
  return map<F>(context, [=](size_t i) { return a[i] + b[i]; });
}

template <typename F> static LogicalResult evaluateMultiply(const OpContext<F> &context) {
  const Tensor &left = context.operands[0], &right = context.operands[1];
  const ArrayRef<F> a = left.as<F>(), b = right.as<F>();
  // A last dimension of 1 is one factor for as many elements as that of the left is long.
  const size_t each = size_t(left.shape().back() / right.shape().back());
  return map<F>(context, [=](size_t i) { return a[i] * b[i / each]; });
}

template <typename F> static LogicalResult evaluateCosineGate(const OpContext<F> &context) {
  auto op = cast<CosineGateOp>(context.op);
  const Tensor &query = context.get(op.getQuery());
  const F *q = query.as<F>().data(), *k = context.floats(op.getKey()).data(), *v = context.floats(op.getValue()).data();
  const F eps = F(op.getEps().convertToDouble());
  const size_t E = size_t(query.shape().back()), heads = size_t(query.elements()) / E;
  F *y = context.make(op.getResult(), query.rows());
  for (size_t head = 0; head < heads; ++head) {
    F both = 0, left = 0, right = 0;
    for (size_t i = head * E; i < (head + 1) * E; ++i)
      both += q[i] * k[i], left += q[i] * q[i], right += k[i] * k[i];
    const F cosine = both / (std::max(std::sqrt(left), eps) * std::max(std::sqrt(right), eps));
    for (size_t i = head * E; i < (head + 1) * E; ++i)
      y[i] = cosine * v[i];
  }
  return success();
}

template <typename F> static LogicalResult evaluateScale(const OpContext<F> &context) {
  const F factor = F(cast<ScaleOp>(context.op).getFactor().convertToDouble());
  const ArrayRef<F> x = context.operands[0].template as<F>();
  return map<F>(context, [=](size_t i) { return factor * x[i]; });
}

template <typename F> static LogicalResult evaluateSoftcap(const OpContext<F> &context) {
  const F cap = F(cast<SoftcapOp>(context.op).getCap().convertToDouble());
  const ArrayRef<F> x = context.operands[0].template as<F>();
  return map<F>(context, [=](size_t i) { return cap * std::tanh(x[i] / cap); });
}

template <typename F> static LogicalResult evaluateSelectRows(const OpContext<F> &context) {
  auto op = cast<SelectRowsOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<int32_t> rows = context.ints(op.getRows());
  const size_t width = size_t(x.width());
  F *y = context.make(op.getResult(), int64_t(rows.size()));
  for (auto [i, row] : llvm::enumerate(rows)) {
    const size_t from = size_t(std::clamp<int64_t>(row, 0, x.rows() - 1));
    llvm::copy(x.as<F>().slice(from * width, width), y + i * width);
  }
  return success();
}

template <typename F> void reference::addElementwiseOps(OpTable<F> &table) {
  table[TypeID::get<ActivationOp>()] = {evaluateActivation<F>, true};
  table[TypeID::get<GatedActivationOp>()] = {evaluateGatedActivation<F>, true};
  table[TypeID::get<AddOp>()] = {evaluateAdd<F>};
  table[TypeID::get<MultiplyOp>()] = {evaluateMultiply<F>};
  table[TypeID::get<CosineGateOp>()] = {evaluateCosineGate<F>};
  table[TypeID::get<ScaleOp>()] = {evaluateScale<F>};
  table[TypeID::get<SoftcapOp>()] = {evaluateSoftcap<F>};
  table[TypeID::get<SelectRowsOp>()] = {evaluateSelectRows<F>};
}
template void reference::addElementwiseOps<float>(OpTable<float> &);
template void reference::addElementwiseOps<double>(OpTable<double> &);
