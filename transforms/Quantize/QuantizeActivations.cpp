#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-quantize-activations";

namespace {

struct QuantizeActivationsPass final : llm::impl::QuantizeActivationsPassBase<QuantizeActivationsPass> {
  using QuantizeActivationsPassBase::QuantizeActivationsPassBase;

  void runOnOperation() override {
    if (bits < 2 || bits > 8) {
      getOperation().emitError() << kPass << " expects 2 to 8 bits, but got " << unsigned(bits);
      return signalPassFailure();
    }
    if (group < 0 || group % 32) {
      getOperation().emitError() << kPass << " expects groups of a multiple of 32 numbers, but got " << int64_t(group);
      return signalPassFailure();
    }
    llvm::DenseMap<Value, Value> quantized;
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](Operation *op) {
      if (productWeights(op).empty() || (!head && !layerOf(op)) || staysInFloats(op))
        return;
      Value x = productInput(op);
      auto type = cast<RankedTensorType>(x.getType());
      if (isa<QuantizedType>(type.getElementType()))
        return;
      if (hasNorm(op)) {
        (void)refuse(rewriter, op, kPass, "a norm is folded into the product: run before llm-fuse-norm");
        return;
      }
      Value &known = quantized[x];
      if (!known) {
        OpBuilder builder(op);
        builder.setInsertionPointAfterValue(x);
        const bool groups = group > 0 && type.getShape().back() % group == 0 && type.getShape().back() != group;
        auto element = QuantizedType::get(&getContext(), QuantCode::signedInt(bits),
                                          {QuantLevel::scaled(groups ? group : kWholeRow, ScaleType::f32())});
        known = QuantizeOp::create(builder, op->getLoc(), RankedTensorType::get(type.getShape(), element), x,
                                   /*clip=*/FloatAttr());
      }
      op->setOperand(0, known);
      report(op, kPass, "reads a quantised input");
    });
  }

private:
  static bool hasNorm(Operation *op) {
    if (auto linear = dyn_cast<LinearOp>(op))
      return linear.getGamma() || linear.getRowScale();
    if (auto gated = dyn_cast<GatedLinearOp>(op))
      return gated.getGamma() || gated.getRowScale();
    return false;
  }
};

} // namespace
