#include "lib/Reference/Interpreter.h"

#include "lib/Reference/Codec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

std::unique_ptr<Evaluator> Evaluator::create(ModuleOp module, StringRef folder, const Options &options) {
  return create(module, std::make_shared<WeightStore>(folder), options);
}

std::unique_ptr<Evaluator> Evaluator::create(ModuleOp module, std::shared_ptr<WeightStore> files,
                                             const Options &options) {
  if (options.precision == Precision::F32)
    return std::make_unique<Interpreter<float>>(module, std::move(files), options);
  return std::make_unique<Interpreter<double>>(module, std::move(files), options);
}

template <typename F>
Interpreter<F>::Interpreter(ModuleOp module, std::shared_ptr<WeightStore> files, const Options &options)
    : module(module), files(std::move(files)), options(options), workers(options.threads),
      weights(*this->files, options.cacheBytes, workers) {
  addProductOps(table);
  addNormOps(table);
  addElementwiseOps(table);
  addExpertOps(table);
  addStateOps(table);
  addSpeculationOps(table);
  addWeightOps(table);
  addAssembleOps(table);
  addStructureOps(table);
}

template <typename F> void Interpreter<F>::setWeight(StringRef source, StringRef key, Tensor value) {
  weights.set(source, key, std::move(value));
}

template <typename F> void Interpreter<F>::moduleChanged() {
  constantOps.clear();
  weights.dropExpressions();
}

template <typename F> FailureOr<CacheContent> Interpreter<F>::cache(StringRef symbol, int64_t index) {
  const KVSlots<F> *slots = state.find(symbol, index);
  if (!slots)
    return module.emitError("expects a cache @") << symbol << "[" << index << "] that was used, but it was not",
           failure();
  CacheContent content;
  content.slots = slots->slots(), content.heads = slots->type.getHeads();
  content.keyWidth = slots->type.getKeyWidth(), content.valueWidth = slots->type.getValueWidth();
  content.keys.assign(slots->keys.begin(), slots->keys.end());
  content.values.assign(slots->values.begin(), slots->values.end());
  content.positions = slots->positions;
  return content;
}

//===- Functions --------------------------------------------------------===//

/// Whether a tensor may stand for a value of the type; dynamic sizes take any.
static bool fits(const Tensor &tensor, Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || ranked.getRank() != int64_t(tensor.shape().size()) ||
      tensor.is<int32_t>() != ranked.getElementType().isInteger())
    return false;
  for (auto [have, want] : llvm::zip(tensor.shape(), ranked.getShape()))
    if (want != ShapedType::kDynamic && have != want)
      return false;
  return true;
}

template <typename F> static Tensor asPrecision(const Tensor &tensor) {
  if (tensor.is<int32_t>() || tensor.is<F>())
    return tensor;
  const std::vector<double> numbers = tensor.toDoubles();
  F *data;
  Tensor result = Tensor::make<F>(tensor.shape(), data);
  std::copy(numbers.begin(), numbers.end(), data);
  return result;
}

template <typename F>
LogicalResult Interpreter<F>::bind(Region &body, Location location, ArrayRef<Tensor> inputs, Frame<F> &frame) {
  if (inputs.size() != body.getNumArguments())
    return emitError(location, "expects ") << body.getNumArguments() << " inputs, but got " << inputs.size();
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs)) {
    if (!fits(input, argument.getType())) {
      auto error = emitError(location, "expects input ")
                   << argument.getArgNumber() << " of type " << argument.getType() << ", but got shape [";
      llvm::interleaveComma(input.shape(), error);
      return error << "] of " << (input.is<int32_t>() ? "integers" : "floats");
    }
    frame.values[argument] = asPrecision<F>(input);
  }
  return success();
}

template <typename F>
FailureOr<SmallVector<Tensor>> Interpreter<F>::call(StringRef function, ArrayRef<Tensor> inputs, KVStore<F> &caches) {
  auto op = module.lookupSymbol<func::FuncOp>(function);
  if (!op || op.isExternal())
    return module.emitError("expects a function @") << function << ", but the module has none", failure();
  Frame<F> frame;
  frame.state = &caches;
  if (failed(bind(op.getBody(), op.getLoc(), inputs, frame)))
    return failure();
  if (!op.getBody().hasOneBlock())
    return op.emitOpError("expects a body of one block, but got several"), failure();
  Block &block = op.getBody().front();
  if (failed(executeBlock(block, frame)))
    return failure();
  SmallVector<Tensor> results;
  for (Value value : block.getTerminator()->getOperands()) {
    FailureOr<Tensor> result = read(value, frame);
    if (failed(result))
      return failure();
    results.push_back(*result);
  }
  return results;
}

//===- Ops --------------------------------------------------------------===//

template <typename F> LogicalResult Interpreter<F>::executeBlock(Block &block, Frame<F> &frame, bool keep) {
  for (Operation &op : block.without_terminator())
    if (failed(execute(&op, frame, keep)))
      return failure();
  return success();
}

template <typename F> FailureOr<Tensor> Interpreter<F>::read(Value value, Frame<F> &frame) {
  if (auto found = frame.values.find(value); found != frame.values.end())
    return found->second;
  if (isa<KVType>(value.getType()))
    return Tensor(); // a handle: see Frame::handles
  if (isConstant(value))
    return constant(value);
  return emitError(value.getLoc(), "expects a value that was evaluated before its use"), failure();
}

template <typename F> void Interpreter<F>::drop(Value value, Frame<F> &frame) {
  auto found = frame.values.find(value);
  if (found == frame.values.end())
    return;
  auto [pending, first] = frame.pending.try_emplace(value, 0);
  if (first)
    pending->second = unsigned(std::distance(value.use_begin(), value.use_end()));
  if (pending->second > 1) {
    --pending->second;
    return;
  }
  frame.pending.erase(pending);
  frame.values.erase(found);
}

template <typename F> void Interpreter<F>::forget(Value value, Frame<F> &frame) {
  frame.pending.erase(value);
  frame.values.erase(value);
}

template <typename F> LogicalResult Interpreter<F>::execute(Operation *op, Frame<F> &frame, bool keep) {
  if (op->getNumResults() == 1 && isConstant(op->getResult(0)))
    return success(); // evaluated where it is used
  SmallVector<Tensor> operands;
  // A table that is looked up by row is not decoded as a whole: the op reads it by itself.
  auto embedding = dyn_cast<EmbeddingOp>(op);
  for (Value value : op->getOperands()) {
    if (embedding && value == embedding.getTable() && value.getDefiningOp<WeightOp>()) {
      operands.emplace_back();
      continue;
    }
    FailureOr<Tensor> operand = read(value, frame);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  if (failed(apply(op, operands, frame, keep)))
    return failure();
  if (observer && observer->wants(op)) {
    SmallVector<Tensor> seen(operands), results;
    for (auto [operand, value] : llvm::zip(seen, op->getOperands()))
      if (isConstant(value))
        operand = Tensor();
    for (Value value : op->getResults())
      results.push_back(frame.values.lookup(value));
    if (failed(observer->visit(op, seen, results)))
      return failure();
  }
  operands.clear();
  if (!keep)
    for (Value value : op->getOperands())
      drop(value, frame);
  return success();
}

/// Rounds a result to the codes of its type.
template <typename F> static LogicalResult roundResult(Workers &workers, Operation *op, Tensor &tensor, Type type) {
  QuantizedType element = getQuantizedElement(type);
  if (!element)
    return success();
  double clip = 1;
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    if (std::optional<APFloat> given = quantize.getClip())
      clip = given->convertToDouble();
  F *data;
  Tensor rounded = Tensor::make<F>(tensor.shape(), data);
  llvm::copy(tensor.as<F>(), data);
  const int64_t K = tensor.shape().back();
  if (failed(roundToCodes<F>(workers, element, data, tensor.elements() / std::max<int64_t>(1, K), K, clip)))
    return op->emitOpError("expects a type that numbers can be rounded to, but got ") << element;
  tensor = rounded;
  return success();
}

template <typename F>
LogicalResult Interpreter<F>::apply(Operation *op, ArrayRef<Tensor> operands, Frame<F> &frame, bool keep) {
  auto rule = table.find(op->getName().getTypeID());
  if (rule == table.end())
    return op->emitError("expects an op that the reference evaluator knows, but got '") << op->getName() << "'";
  if (failed(rule->second.evaluate(OpContext<F>(*this, frame, op, operands, keep))))
    return failure();
  if (rule->second.quantises)
    for (Value result : op->getResults())
      if (failed(roundResult<F>(workers, op, frame.values[result], result.getType())))
        return failure();
  return success();
}

//===- Constants --------------------------------------------------------===//

template <typename F> bool Interpreter<F>::isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto known = constantOps.find(op); known != constantOps.end())
    return known->second;
  bool constant = isa<WeightOp>(op) || op->hasTrait<OpTrait::ConstantLike>();
  if (!constant && op->getNumOperands() != 0 && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
      isMemoryEffectFree(op))
    constant = llvm::all_of(op->getOperands(), [&](Value operand) { return isConstant(operand); });
  constantOps[op] = constant;
  return constant;
}

template <typename F> FailureOr<Tensor> Interpreter<F>::constant(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast<WeightOp>(op))
    return weights.load(weight);
  if (std::optional<Tensor> found = weights.findExpression(value))
    return *found;
  // Operands are not kept for their own sake; a weight that is also used elsewhere is.
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Tensor> tensor = constant(operand);
    if (failed(tensor))
      return failure();
    operands.push_back(*tensor);
  }
  Frame<F> frame;
  frame.state = &state;
  if (failed(apply(op, operands, frame, false)))
    return failure();
  Tensor result = frame.values.lookup(value);
  weights.keepExpression(value, result);
  return result;
}

template class mlir::llm::reference::Interpreter<float>;
template class mlir::llm::reference::Interpreter<double>;
