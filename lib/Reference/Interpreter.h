// The machine behind Evaluator.h, for one precision F: frames of values, the table of ops, and what ops see of it.
#ifndef SPRIG_LIB_REFERENCE_INTERPRETER_H
#define SPRIG_LIB_REFERENCE_INTERPRETER_H

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Evaluator.h"
#include "lib/Reference/KVStore.h"
#include "lib/Reference/Math/Workers.h"
#include "lib/Reference/WeightLoader.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::llm::reference {

template <typename F> class Interpreter;

/// The values of one evaluation of a function, and the state it works on.
template <typename F> struct Frame {
  llvm::DenseMap<Value, Tensor> values;
  llvm::DenseMap<Value, KVSlots<F> *> handles;
  /// Uses that are still to come; a value is dropped at its last.
  llvm::DenseMap<Value, unsigned> pending;
  KVStore<F> *state = nullptr;
};

/// What the evaluation of one op works with. Operands have been evaluated.
template <typename F> class OpContext {
public:
  OpContext(Interpreter<F> &interpreter, Frame<F> &frame, Operation *op, ArrayRef<Tensor> operands, bool keep)
      : interpreter(interpreter), frame(frame), op(op), operands(operands), keep(keep) {}

  Workers &workers() const { return interpreter.workers; }
  const Tensor &get(Value operand) const {
    for (OpOperand &use : op->getOpOperands())
      if (use.get() == operand)
        return operands[use.getOperandNumber()];
    llvm_unreachable("not an operand of this op");
  }
  ArrayRef<F> floats(Value operand) const { return get(operand).template as<F>(); }
  /// Empty where an optional operand is absent.
  std::span<const F> optional(Value operand) const {
    if (!operand)
      return {};
    ArrayRef<F> numbers = floats(operand);
    return {numbers.data(), numbers.size()};
  }
  ArrayRef<int32_t> ints(Value operand) const { return get(operand).template as<int32_t>(); }
  KVSlots<F> &cache(Value handle) const { return *frame.handles.lookup(handle); }

  void set(Value result, Tensor tensor) const { frame.values[result] = std::move(tensor); }
  /// Makes the tensor of a result: its type's shape with `rows` for a dynamic first dimension.
  template <typename E = F> E *make(Value result, int64_t rows) const {
    SmallVector<int64_t> shape(cast<RankedTensorType>(result.getType()).getShape());
    if (!shape.empty() && ShapedType::isDynamic(shape.front()))
      shape.front() = rows;
    E *data;
    set(result, Tensor::make<E>(shape, data));
    return data;
  }

  Interpreter<F> &interpreter;
  Frame<F> &frame;
  Operation *op;
  ArrayRef<Tensor> operands;
  bool keep; ///< see Interpreter::execute
};

/// How an op is evaluated.
template <typename F> struct OpRule {
  LogicalResult (*evaluate)(const OpContext<F> &) = nullptr;
  /// Results of a `!llm.q` type are rounded to its codes afterwards.
  bool quantises = false;
};

template <typename F> using OpTable = llvm::DenseMap<TypeID, OpRule<F>>;

// One function for each file of Ops/.
template <typename F> void addProductOps(OpTable<F> &table);
template <typename F> void addNormOps(OpTable<F> &table);
template <typename F> void addElementwiseOps(OpTable<F> &table);
template <typename F> void addExpertOps(OpTable<F> &table);
template <typename F> void addStateOps(OpTable<F> &table);
template <typename F> void addSpeculationOps(OpTable<F> &table);
template <typename F> void addWeightOps(OpTable<F> &table);
template <typename F> void addAssembleOps(OpTable<F> &table);
template <typename F> void addStructureOps(OpTable<F> &table);

template <typename F> class Interpreter final : public Evaluator {
public:
  Interpreter(ModuleOp module, std::shared_ptr<WeightStore> files, const Options &options);

  FailureOr<SmallVector<Tensor>> run(StringRef function, ArrayRef<Tensor> inputs) override {
    return call(function, inputs, state);
  }
  void resetState() override { state.clear(); }
  void truncateState(int64_t slots) override { state.truncate(slots); }
  FailureOr<CacheContent> cache(StringRef symbol, int64_t index) override;
  void setWeight(StringRef source, StringRef key, Tensor value) override;
  void moduleChanged() override;
  void setObserver(Observer *value) override { observer = value; }

  /// A function on given caches.
  FailureOr<SmallVector<Tensor>> call(StringRef function, ArrayRef<Tensor> inputs, KVStore<F> &caches);
  /// Checks inputs against the types of a function and binds them to its arguments.
  LogicalResult bind(Region &body, Location location, ArrayRef<Tensor> inputs, Frame<F> &frame);
  /// Evaluates one op. With `keep`, values from outside its own regions are not dropped, so that it can be repeated.
  LogicalResult execute(Operation *op, Frame<F> &frame, bool keep = false);
  /// Evaluates the ops of a block but its terminator.
  LogicalResult executeBlock(Block &block, Frame<F> &frame, bool keep = false);
  /// A value of the frame, or a constant.
  FailureOr<Tensor> read(Value value, Frame<F> &frame);
  /// One use of the value is done.
  void drop(Value value, Frame<F> &frame);
  /// All of them are.
  void forget(Value value, Frame<F> &frame);

  /// True for weights and pure expressions over nothing but weights.
  bool isConstant(Value value);
  FailureOr<Tensor> constant(Value value);

  ModuleOp module;
  std::shared_ptr<WeightStore> files;
  Options options;
  Workers workers;
  WeightLoader<F> weights;
  KVStore<F> state;
  Observer *observer = nullptr;

private:
  LogicalResult apply(Operation *op, ArrayRef<Tensor> operands, Frame<F> &frame, bool keep);

  OpTable<F> table;
  llvm::DenseMap<Operation *, bool> constantOps;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_INTERPRETER_H
