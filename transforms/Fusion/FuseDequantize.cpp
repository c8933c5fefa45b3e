#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSEDEQUANTIZEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-dequantize";

/// The operands of an op that a kernel can read quantised.
static SmallVector<OpOperand *> weightsOf(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return {&linear.getWeightMutable()};
  if (auto gated = dyn_cast<GatedLinearOp>(op))
    return {&gated.getGateMutable(), &gated.getUpMutable()};
  if (auto expert = dyn_cast<ExpertLinearOp>(op))
    return {&expert.getWeightMutable()};
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    return {&embedding.getTableMutable()};
  return {};
}

/// Whether the numbers of a quantised tensor can be cut at `at` along its last axis.
static bool isGroupBorder(RankedTensorType type, int64_t at) {
  const int64_t block = cast<QuantizedType>(type.getElementType()).blockElements();
  return at == 0 || at == type.getShape().back() || (block != kWholeRow && at % block == 0);
}

/// Whether `op`, which chooses or orders parts of dequantised tensors, may do so before they are dequantised.
static LogicalResult keepsGroups(Operation *op, MutableArrayRef<DequantizeOp> inputs) {
  auto type = cast<RankedTensorType>(inputs.front().getInput().getType());
  const int64_t last = type.getRank() - 1;
  if (auto slice = dyn_cast<SliceOp>(op))
    return success(int64_t(slice.getAxis()) != last || (isGroupBorder(type, int64_t(slice.getBegin())) &&
                                                        isGroupBorder(type, int64_t(slice.getEnd()))));
  if (auto gather = dyn_cast<GatherOp>(op))
    return success(int64_t(gather.getAxis()) != last);
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    for (DequantizeOp input : inputs) {
      auto part = cast<RankedTensorType>(input.getInput().getType());
      const int64_t block = cast<QuantizedType>(part.getElementType()).blockElements();
      if (part.getElementType() != type.getElementType() || part.getEncoding() != type.getEncoding() ||
          (int64_t(concat.getAxis()) == last && (block == kWholeRow || part.getShape().back() % block != 0)))
        return failure();
    }
    return success();
  }
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return success(transpose.getOrder().back() == last);
  auto reshape = cast<ReshapeOp>(op);
  return success(cast<RankedTensorType>(reshape.getType()).getShape().back() == type.getShape().back());
}

namespace {

/// slice(dequantize(q)) ==> dequantize(slice(q)); also gather, concat, transpose, reshape
struct SinkDequantize final : RewritePattern {
  SinkDequantize(MLIRContext *context, bool fuseShared)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), fuseShared(fuseShared) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<SliceOp, GatherOp, ConcatOp, TransposeOp, ReshapeOp>(op))
      return rewriter.notifyMatchFailure(op, "not a choice or an order of parts");
    SmallVector<DequantizeOp> inputs;
    SmallVector<Value> operands(op->getOperands());
    // An index stays as it is; every tensor must be dequantised here.
    const size_t tensors = isa<ConcatOp>(op) ? operands.size() : 1;
    for (size_t i = 0; i < tensors; ++i) {
      auto input = operands[i].getDefiningOp<DequantizeOp>();
      if (!input || (!fuseShared && !input->hasOneUse()))
        return rewriter.notifyMatchFailure(op, "an input is not dequantised, or has other users");
      operands[i] = input.getInput();
      inputs.push_back(input);
    }
    if (failed(keepsGroups(op, inputs)))
      return rewriter.notifyMatchFailure(op, "groups of the quantised numbers would be cut");
    auto floats = cast<RankedTensorType>(op->getResult(0).getType());
    auto stored = cast<RankedTensorType>(inputs.front().getInput().getType());
    auto quantized = RankedTensorType::get(floats.getShape(), stored.getElementType(), stored.getEncoding());
    Operation *moved = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands, {quantized},
                                       op->getAttrs());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, floats, moved->getResult(0));
    return success();
  }

  bool fuseShared;
};

/// linear(x, dequantize(q)) ==> linear(x, q); also gated_linear, expert_linear, embedding
struct FuseDequantize final : RewritePattern {
  FuseDequantize(MLIRContext *context, bool fuseShared)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), fuseShared(fuseShared) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand *weight : weightsOf(op)) {
      auto dequantize = weight->get().getDefiningOp<DequantizeOp>();
      if (!dequantize)
        continue;
      if (!fuseShared && !dequantize->hasOneUse()) {
        (void)refuse(rewriter, op, kPass, "weight has other users");
        continue;
      }
      // f32 holds what every format means; a narrower float has rounded it.
      if (cast<ShapedType>(dequantize.getType()).getElementTypeBitWidth() < 32) {
        (void)refuse(rewriter, op, kPass, "weight is dequantised to a type that rounds");
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] { weight->set(dequantize.getInput()); });
      report(op, kPass, "reads a quantised weight");
      if (dequantize->use_empty())
        rewriter.eraseOp(dequantize);
      changed = true;
    }
    return changed ? success() : rewriter.notifyMatchFailure(op, "no weight is dequantised");
  }

  bool fuseShared;
};

struct FuseDequantizePass final : llm::impl::FuseDequantizePassBase<FuseDequantizePass> {
  using FuseDequantizePassBase::FuseDequantizePassBase;

  void runOnOperation() override {
    RewritePatternSet sinks(&getContext());
    sinks.add<SinkDequantize>(&getContext(), fuseShared);
    // Only moves: the driver's own folding would rewrite what this pass is not asked to touch.
    const GreedyRewriteConfig config = GreedyRewriteConfig().enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(sinks), config)))
      return signalPassFailure();
    RewritePatternSet fusions(&getContext());
    fusions.add<FuseDequantize>(&getContext(), fuseShared);
    walkAndApplyPatterns(getOperation(), std::move(fusions));
  }
};

} // namespace
