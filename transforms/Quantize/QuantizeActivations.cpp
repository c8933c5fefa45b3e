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
    Operation *others = nullptr; ///< the first product of a weight that is not of integers
    bool bad = false;
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
      if (Value weight = weightOfOthers(op)) {
        (void)refuse(rewriter, op, kPass,
                     "\"" + weightName(weight) + "\" is not of integers, which those of its input could be multiplied with");
        others = others ? others : op;
        return;
      }
      const int64_t width = type.getShape().back();
      if (group > 0 && width > group && width % group && type.getRank() == 2) {
        op->emitOpError("reads rows of ")
            << width << " numbers, which groups of " << int64_t(group)
            << " do not divide: activations have no short last group; take one of " << divisorsOf(width)
            << ", or 0 for whole rows";
        bad = true;
        return;
      }
      Value &known = quantized[x];
      if (!known) {
        OpBuilder builder(op);
        builder.setInsertionPointAfterValue(x);
        // A head that they do not divide has a scale of its own.
        const bool groups = group > 0 && width > group && width % group == 0;
        auto element = QuantizedType::get(&getContext(), QuantCode::signedInt(bits),
                                          {QuantLevel::scaled(groups ? group : kWholeRow, ScaleType::f32())});
        known = QuantizeOp::create(builder, op->getLoc(), RankedTensorType::get(type.getShape(), element), x,
                                   /*clip=*/FloatAttr());
      }
      op->setOperand(0, known);
      report(op, kPass, "reads a quantised input");
    });
    if (others && quantized.empty() && !bad) {
      Value weight = weightOfOthers(others);
      others->emitOpError("expects weights of integers, with which those of activations could be multiplied, but got \"")
          << weightName(weight) << "\" of " << weight.getType()
          << ", and so are all others: give weights their bits, too (w: of --quantize)";
      bad = true;
    }
    if (bad)
      signalPassFailure();
  }

private:
  /// A weight of `op` whose codes are no integers; null where all are.
  static Value weightOfOthers(Operation *op) {
    for (OpOperand *operand : productWeights(op)) {
      Value weight = operand->get();
      if (auto dequantize = weight.getDefiningOp<DequantizeOp>())
        weight = dequantize.getInput();
      auto type = dyn_cast<QuantizedType>(cast<RankedTensorType>(weight.getType()).getElementType());
      if (!type || !hasIntegers(type))
        return weight;
    }
    return {};
  }

  /// Twice a 4-bit float is one, and so are the entries of IQ4_NL's table; books of floats and 8-bit floats are not.
  static bool hasIntegers(QuantizedType type) {
    switch (type.getCode().kind) {
    case CodeKind::Signed:
    case CodeKind::Unsigned:
    case CodeKind::Offset:
    case CodeKind::Trit:
    case CodeKind::F4E2M1:
      return true;
    case CodeKind::Codebook:
      return type.getCodebook() == "iq4nl";
    case CodeKind::F8E4M3:
    case CodeKind::F8E5M2:
    case CodeKind::Grid:
      return false;
    }
    return false;
  }

  /// The powers of two from 32 on that divide a row.
  static std::string divisorsOf(int64_t width) {
    std::string list;
    for (int64_t size = 32; size < width && width % size == 0; size *= 2)
      list += (list.empty() ? "" : ", ") + std::to_string(size);
    return list.empty() ? "none" : list;
  }

  static bool hasNorm(Operation *op) {
    if (auto linear = dyn_cast<LinearOp>(op))
      return linear.getGamma() || linear.getRowScale();
    if (auto gated = dyn_cast<GatedLinearOp>(op))
      return gated.getGamma() || gated.getRowScale();
    return false;
  }
};

} // namespace
