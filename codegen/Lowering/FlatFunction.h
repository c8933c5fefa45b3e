// A function as the straight line that lowering walks: layers opened, what a
// program does not need left out.
#ifndef SPRIG_CODEGEN_LOWERING_FLATFUNCTION_H
#define SPRIG_CODEGEN_LOWERING_FLATFUNCTION_H

#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::llm {

struct FlatOp {
  Operation *op;
  /// "layer 3", or empty outside layers: the start of a dispatch's label.
  std::string where;
};

class FlatFunction {
public:
  explicit FlatFunction(func::FuncOp function);

  ArrayRef<FlatOp> ops() const { return flat; }
  /// What a layer's argument or result stands for.
  Value resolve(Value value) const;
  /// The (first) operand of the return; null where there is none.
  Value result() const { return returned; }
  /// The hidden state behind the logits, of a function that returns it too;
  /// null otherwise.
  Value hiddenResult() const { return returnedHidden; }
  /// What the last layer leaves; null where there is no layer.
  Value lastOutput() const { return last; }
  func::FuncOp function() const { return source; }
  /// The logits: the result, or what the result's tree_verify draws from; null
  /// of a function that returns nothing.
  Value logits() const;

  /// The query of the attention that reads the cache which `append` fills, or
  /// null. One kernel rotates queries and keys and appends, so an append needs
  /// its query.
  Value queryOf(KVAppendOp append) const;

  /// Operations with an effect, and what they are made of; with `logits`, what
  /// the result is made of too.
  llvm::DenseSet<Operation *> needed(bool logits) const;

private:
  void flatten(Block &block, StringRef where);

  SmallVector<FlatOp> flat;
  llvm::DenseMap<Value, Value> aliases;
  Value returned, returnedHidden, last;
  func::FuncOp source;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_FLATFUNCTION_H
