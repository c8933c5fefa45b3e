#include "codegen/Lowering/FlatFunction.h"

namespace mlir::llm {

FlatFunction::FlatFunction(func::FuncOp function) : source(function) {
  flatten(function.getBody().front(), "");
}

void FlatFunction::flatten(Block &block, StringRef where) {
  for (Operation &op : block) {
    if (auto layer = dyn_cast<LayerOp>(op)) {
      Block &body = *layer.getBodyBlock();
      for (auto [argument, input] :
           llvm::zip_equal(body.getArguments(), layer.getInputs()))
        aliases[argument] = input;
      flatten(body, ("layer " + Twine(layer.getIndex())).str());
      for (auto [output, value] :
           llvm::zip_equal(layer.getOutputs(), layer.getYield().getValues()))
        aliases[output] = value;
      if (!layer.getOutputs().empty())
        last = layer.getOutputs().front();
    } else if (auto exit = dyn_cast<func::ReturnOp>(op)) {
      returned = exit.getNumOperands() ? exit.getOperand(0) : Value();
      if (exit.getNumOperands() == 2)
        returnedHidden = exit.getOperand(1);
    } else if (!isa<YieldOp>(op)) {
      flat.push_back({&op, where.str()});
    }
  }
}

Value FlatFunction::resolve(Value value) const {
  for (auto it = aliases.find(value); it != aliases.end();
       it = aliases.find(value))
    value = it->second;
  return value;
}

Value FlatFunction::queryOf(KVAppendOp append) const {
  for (Operation *user : append.getCache().getUsers())
    if (auto attention = dyn_cast<AttentionOp>(user))
      return resolve(attention.getQuery());
    else if (auto tree = dyn_cast<TreeAttentionOp>(user))
      return resolve(tree.getQuery());
  return {};
}

Value FlatFunction::logits() const {
  if (!returned)
    return {};
  Value result = resolve(returned);
  if (auto verify = result.getDefiningOp<TreeVerifyOp>())
    return resolve(verify.getLogits());
  return result;
}

llvm::DenseSet<Operation *> FlatFunction::needed(bool logits) const {
  llvm::DenseSet<Operation *> set;
  if (logits && returned)
    set.insert(resolve(returned).getDefiningOp());
  for (const FlatOp &entry : llvm::reverse(flat)) {
    if (!isMemoryEffectFree(entry.op) &&
        hasEffect<MemoryEffects::Write>(entry.op))
      set.insert(entry.op);
    if (!set.contains(entry.op))
      continue;
    SmallVector<Value> operands(entry.op->getOperands());
    if (auto append = dyn_cast<KVAppendOp>(entry.op))
      if (Value query = queryOf(append))
        operands.push_back(query);
    for (Value operand : operands)
      if (Operation *producer = resolve(operand).getDefiningOp())
        set.insert(producer);
  }
  return set;
}

} // namespace mlir::llm
