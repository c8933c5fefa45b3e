#include "codegen/Lowering/ReadAsNumbers.h"

#include "codegen/Lowering/Passes.h"
#include "dialects/LLM/LLM.h"
#include "lib/Quant/Affine.h"
#include "lib/Weights/WeightExpr.h"
#include "lib/Weights/WeightTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"

namespace mlir::llm {

/// Whether only its size keeps a type from a format of groups.
static bool hasOddUnits(RankedTensorType type) {
  auto element = dyn_cast<QuantizedType>(type.getElementType());
  if (!element || type.getRank() == 0 || deviceFormatOf(type))
    return false;
  constexpr int64_t unit = sprig::quant::kAffineUnit;
  return type.getShape().back() % unit != 0 ||
         llvm::any_of(element.getLevels(), [](const QuantLevel &level) {
           return level.group != kWholeRow && level.group % unit != 0;
         });
}

void readOddRowsAsNumbers(ModuleOp module) {
  SmallVector<OpOperand *> found;
  module.walk([&](Operation *op) {
    if (isa<LinearOp, GatedLinearOp, ExpertLinearOp, EmbeddingOp>(op))
      for (OpOperand &operand : op->getOpOperands()) {
        auto type = dyn_cast<RankedTensorType>(operand.get().getType());
        if (type && hasOddUnits(type) && isWeightExpr(operand.get()))
          found.push_back(&operand);
      }
  });
  if (found.empty())
    return;
  // Each weight once, whoever reads it: equal expressions are one tensor of the package.
  for (OpOperand *operand : found) {
    Operation *op = operand->getOwner();
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(operand->get().getType());
    operand->set(DequantizeOp::create(builder, op->getLoc(),
                                      RankedTensorType::get(type.getShape(), builder.getF32Type()), operand->get()));
    remark::missed(op->getLoc(), remark::RemarkOpts::name("odd-rows").category(kLoweringRemarks))
        << "a weight is read as f32, for its rows or groups are no whole units of "
        << std::to_string(sprig::quant::kAffineUnit) << " numbers";
  }
  emitWarning(module.getLoc()) << found.size() << " products read quantised weights as f32, four bytes a number: kernels read "
                       << "codes by whole units of " << sprig::quant::kAffineUnit
                       << " numbers, of which rows or groups of these weights are no multiple";
}

} // namespace mlir::llm
