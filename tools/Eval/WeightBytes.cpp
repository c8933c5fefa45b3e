#include "tools/Eval/WeightBytes.h"

#include "lib/Weights/WeightExpr.h"
#include "lib/Weights/WeightTypes.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::llm;

/// The value whose numbers are stored: a dequantised weight is read in its codes.
static Value stored(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<DequantizeOp, RelayoutOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

uint64_t mlir::llm::weightBytes(Operation *function) {
  double bits = 0;
  std::set<std::pair<const void *, const void *>> seen;
  function->walk([&](Operation *op) {
    if (op->getNumResults() == 1 && isWeightExpr(op->getResult(0)))
      return; // counted where it is read
    for (Value operand : op->getOperands()) {
      if (!isa<RankedTensorType>(operand.getType()) || !isWeightExpr(operand))
        continue;
      Value value = stored(operand);
      auto weight = value.getDefiningOp<WeightOp>();
      const bool named = weight && !weight.isInline();
      const auto name =
          named ? std::make_pair(weight.getSourceAttr().getAsOpaquePointer(), weight.getKeyAttr().getAsOpaquePointer())
                : std::make_pair(static_cast<const void *>(value.getAsOpaquePointer()),
                                 static_cast<const void *>(nullptr));
      auto type = cast<RankedTensorType>(value.getType());
      if (seen.insert(name).second)
        bits += storedBits(type.getElementType()) * double(type.getNumElements());
    }
  });
  return uint64_t(std::ceil(bits / 8));
}
