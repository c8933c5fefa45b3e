#include "transforms/Quantize/Products.h"

#include "lib/Weights/WeightExpr.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

using namespace mlir;
using namespace mlir::llm;

SmallVector<OpOperand *> mlir::llm::productWeights(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return {&linear.getWeightMutable()};
  if (auto gated = dyn_cast<GatedLinearOp>(op))
    return {&gated.getGateMutable(), &gated.getUpMutable()};
  if (auto expert = dyn_cast<ExpertLinearOp>(op))
    return {&expert.getWeightMutable()};
  return {};
}

/// By the names of an adapter's file, which new weights keep at the front of theirs.
static bool isOfAdapter(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast_or_null<WeightOp>(op))
    return weight.getKey() && (weight.getKey()->contains(".lora_A.") || weight.getKey()->contains(".lora_B."));
  return op && llvm::any_of(op->getOperands(), isOfAdapter);
}

bool mlir::llm::staysInFloats(Operation *product) {
  auto chosen = dyn_cast<ExpertLinearOp>(product);
  return productInput(product).getDefiningOp<GatherOp>() || (chosen && chosen.getIds().getDefiningOp<AdapterChoiceOp>()) ||
         llvm::any_of(productWeights(product), [](OpOperand *weight) { return isOfAdapter(weight->get()); });
}

std::string mlir::llm::weightName(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto weight = dyn_cast<WeightOp>(op))
      return weight.getKey() ? weight.getKey()->str() : "inline";
    if (op->getNumOperands() == 0)
      break;
    value = op->getOperand(0);
  }
  return "weight";
}

FailureOr<Matrix> mlir::llm::readMatrix(Value value, WeightStore &store, Operation *user) {
  if (!isWeightExpr(value))
    return user->emitOpError("expects a weight that is known before run time, but got ") << value.getType(), failure();
  FailureOr<std::unique_ptr<WeightExpr>> expr = openWeightExpr(value, store);
  if (failed(expr))
    return failure();
  Matrix matrix{(*expr)->rows(), (*expr)->columns(), {}};
  matrix.numbers.resize(size_t(matrix.N * matrix.K));
  (*expr)->decode(0, matrix.N, matrix.numbers.data());
  (*expr)->release(0, matrix.N);
  for (auto [i, number] : llvm::enumerate(matrix.numbers))
    if (!std::isfinite(number))
      return user->emitOpError("expects finite numbers in \"")
                 << weightName(value) << "\", but row " << int64_t(i) / matrix.K << ", column "
                 << int64_t(i) % matrix.K << " is " << (std::isnan(number) ? "not a number" : "infinite"),
             failure();
  return matrix;
}

WeightStore *mlir::llm::weightStoreOf(Operation *op) {
  WeightStore *store = WeightStore::of(op->getContext());
  if (!store)
    op->emitOpError("makes new weights, which this tool has no place for; use llm-compile --emit=llm");
  return store;
}

void mlir::llm::eraseDead(Operation *op) {
  if (!op || !isOpTriviallyDead(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseDead(operand.getDefiningOp());
}

void mlir::llm::replaceWeight(OpOperand &operand, Value value) {
  Operation *before = operand.get().getDefiningOp();
  operand.set(value);
  eraseDead(before);
}

LogicalResult mlir::llm::rewriteFunctions(ModuleOp module, WeightStore *&store, WeightSpill *&spill,
                                          llvm::function_ref<LogicalResult(func::FuncOp)> rewrite) {
  store = weightStoreOf(module);
  spill = store ? store->spill(module) : nullptr;
  if (!spill)
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(rewrite(function)))
      return failure();
  return success();
}

void mlir::llm::replaceInProducts(Operation *product, OpOperand &operand, Value value,
                                  llvm::function_ref<bool(Operation *)> wants,
                                  llvm::DenseSet<OpOperand *> &finished) {
  for (OpOperand &use : llvm::make_early_inc_range(operand.get().getUses())) {
    Operation *user = use.getOwner();
    const bool later = user->getBlock() == product->getBlock() && product->isBeforeInBlock(user);
    if (later && wants(user) && llvm::is_contained(productWeights(user), &use)) {
      use.set(value);
      finished.insert(&use);
    }
  }
  replaceWeight(operand, value);
  finished.insert(&operand);
}

Operation *mlir::llm::layerOf(Operation *op) { return op->getParentOfType<LayerOp>(); }

void mlir::llm::forRows(MLIRContext *context, int64_t rows, int64_t atLeast,
                        llvm::function_ref<void(int64_t, int64_t)> body) {
  const int64_t threads = context->isMultithreadingEnabled() ? int64_t(context->getNumThreads()) : 1;
  const int64_t pieces = std::clamp<int64_t>(rows / std::max<int64_t>(atLeast, 1), 1, 4 * threads);
  parallelFor(context, 0, size_t(pieces), [&](size_t i) {
    body(rows * int64_t(i) / pieces, rows * int64_t(i + 1) / pieces);
  });
}
