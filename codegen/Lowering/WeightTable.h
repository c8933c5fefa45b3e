// Weights of a function as tensors of the module: each expression and layout
// once, whoever uses it.
#ifndef SPRIG_CODEGEN_LOWERING_WEIGHTTABLE_H
#define SPRIG_CODEGEN_LOWERING_WEIGHTTABLE_H

#include "codegen/Lowering/WeightLayout.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

class WeightTable {
public:
  /// Tensors already in `module` are found again.
  explicit WeightTable(ModuleOp module);

  /// The tensor that holds `weight` in `layout`. Errors are on `user`.
  FailureOr<plan::TensorOp> get(Value weight, StringRef layout,
                                Operation *user);

  /// A tensor of numbers that lowering made up, f32 in row-major order.
  plan::TensorOp constant(StringRef name, DenseElementsAttr value);

private:
  plan::TensorOp insert(StringRef name, StringRef layout, uint64_t bytes,
                        Location loc);

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<plan::TensorOp>
      byExpression; // the expression as text, and the layout
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_WEIGHTTABLE_H
