// Layers, and the few ops of other dialects that functions of the llm dialect contain.
#include "lib/Reference/Decode.h"
#include "lib/Reference/Interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// Passes values on under other names, handles of caches included.
template <typename F> static LogicalResult pass(const OpContext<F> &context, ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip(from, to)) {
    if (isa<KVType>(target.getType())) {
      context.frame.handles[target] = context.frame.handles.lookup(source);
      continue;
    }
    FailureOr<Tensor> value = context.interpreter.read(source, context.frame);
    if (failed(value))
      return failure();
    context.set(target, *value);
  }
  return success();
}

template <typename F> static LogicalResult evaluateLayer(const OpContext<F> &context) {
  auto op = cast<LayerOp>(context.op);
  Block &body = *op.getBodyBlock();
  if (failed(pass(context, op.getInputs(), body.getArguments())) ||
      failed(context.interpreter.executeBlock(body, context.frame, context.keep)) ||
      failed(pass(context, op.getYield().getValues(), op.getOutputs())))
    return failure();
  for (Value argument : body.getArguments())
    context.interpreter.forget(argument, context.frame);
  for (Operation &inner : body)
    for (Value value : inner.getResults())
      context.interpreter.forget(value, context.frame);
  return success();
}

template <typename F> static LogicalResult evaluateConstant(const OpContext<F> &context) {
  auto op = cast<arith::ConstantOp>(context.op);
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError("expects a tensor, but got ") << op.getValue();
  FailureOr<Tensor> value = decodeElements<F>(op, elements);
  if (failed(value))
    return failure();
  context.set(op.getResult(), *value);
  return success();
}

/// Sums of positions and depths.
template <typename F> static LogicalResult evaluateAddInteger(const OpContext<F> &context) {
  auto op = cast<arith::AddIOp>(context.op);
  if (!isa<RankedTensorType>(op.getType()))
    return op.emitOpError("expects tensors, but got ") << op.getType();
  const ArrayRef<int32_t> a = context.ints(op.getLhs()), b = context.ints(op.getRhs());
  int32_t *sum = context.template make<int32_t>(op.getResult(), context.operands[0].rows());
  for (size_t i = 0; i < a.size(); ++i)
    sum[i] = int32_t(uint32_t(a[i]) + uint32_t(b[i]));
  return success();
}

template <typename F> static LogicalResult evaluateCall(const OpContext<F> &context) {
  auto op = cast<func::CallOp>(context.op);
  FailureOr<SmallVector<Tensor>> results =
      context.interpreter.call(op.getCallee(), context.operands, *context.frame.state);
  if (failed(results))
    return failure();
  for (auto [value, result] : llvm::zip(op.getResults(), *results))
    context.set(value, result);
  return success();
}

template <typename F> void reference::addStructureOps(OpTable<F> &table) {
  table[TypeID::get<LayerOp>()] = {evaluateLayer<F>};
  table[TypeID::get<arith::ConstantOp>()] = {evaluateConstant<F>};
  table[TypeID::get<arith::AddIOp>()] = {evaluateAddInteger<F>};
  table[TypeID::get<func::CallOp>()] = {evaluateCall<F>};
}
template void reference::addStructureOps<float>(OpTable<float> &);
template void reference::addStructureOps<double>(OpTable<double> &);
