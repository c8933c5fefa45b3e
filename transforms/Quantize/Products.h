// The products of a model, and the numbers of their weights.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_PRODUCTS_H
#define SPRIG_TRANSFORMS_QUANTIZE_PRODUCTS_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightStore.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <vector>

namespace mlir::llm {

/// The weights of a linear, gated_linear or expert_linear; none of other ops.
SmallVector<OpOperand *> productWeights(Operation *op);
/// The number of operands that are its `x`: always the first.
inline Value productInput(Operation *product) { return product->getOperand(0); }

/// Whether a product is not quantised: one that reads a few columns that llm-split-outliers put apart, one of a LoRA adapter
/// that stays beside the weights, and one of the adapters that a session chooses from.
bool staysInFloats(Operation *product);

/// The key of the weight that a value is made of, for messages and for names of new weights.
std::string weightName(Value value);

/// Numbers of a weight; leading dimensions count as rows.
struct Matrix {
  int64_t N = 0, K = 0;
  std::vector<float> numbers;
  ArrayRef<float> row(int64_t n) const { return ArrayRef(numbers).slice(size_t(n * K), size_t(K)); }
  MutableArrayRef<float> row(int64_t n) {
    return MutableArrayRef<float>(numbers).slice(size_t(n * K), size_t(K));
  }
};

/// Reads a weight expression. Errors, on `user`: a value that is not known before run time, and numbers that are not
/// finite (named with their place).
FailureOr<Matrix> readMatrix(Value value, WeightStore &store, Operation *user);

/// The store of the context; null with an error on `op` where a tool attached none.
WeightStore *weightStoreOf(Operation *op);

/// Opens the store and the file of new weights of a pass over a module, and calls `rewrite` for each function with a body,
/// until one fails. Errors are diagnostics.
LogicalResult rewriteFunctions(ModuleOp module, WeightStore *&store, WeightSpill *&spill,
                               llvm::function_ref<LogicalResult(func::FuncOp)> rewrite);

/// Replaces what an operand reads, and erases what made the old value where nothing else reads it.
void replaceWeight(OpOperand &operand, Value value);

/// The same for all products of the block that read this weight from `product` on and are wanted, so that it is worked on
/// once; their operands are added to `finished`.
void replaceInProducts(Operation *product, OpOperand &operand, Value value, llvm::function_ref<bool(Operation *)> wants,
                       llvm::DenseSet<OpOperand *> &finished);

/// Erases an op that nothing reads, and then what it alone had read.
void eraseDead(Operation *op);

/// The layer around an op, or null.
Operation *layerOf(Operation *op);

/// Calls `body(begin, end)` for ranges of rows on the threads of the context.
void forRows(MLIRContext *context, int64_t rows, int64_t atLeast, llvm::function_ref<void(int64_t, int64_t)> body);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_QUANTIZE_PRODUCTS_H
