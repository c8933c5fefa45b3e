// llm-tree-verify: see Passes.td.
#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_TREEVERIFYPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {

struct TreeVerifyPass final : llm::impl::TreeVerifyPassBase<TreeVerifyPass> {
  using TreeVerifyPassBase::TreeVerifyPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.lookupSymbol("verify"))
      return;
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.getNumArguments() != 3 || forward.getNumResults() != 1 ||
        !forward.getBody().hasOneBlock()) {
      if (ifPossible)
        return;
      module.emitError("expects a function @forward(ids, positions, rows) -> logits, but got none");
      return signalPassFailure();
    }
    if (Refusal refusal = check(forward); !refusal.op)
      convert(forward);
    else if (ifPossible)
      remark::missed(refusal.op->getLoc(), remark::RemarkOpts::name("llm-tree-verify").category(kRemarkCategory))
          << ("no trees: " + refusal.why).str();
    else {
      refusal.op->emitOpError(refusal.why);
      signalPassFailure();
    }
  }

private:
  struct Refusal {
    Operation *op = nullptr; ///< null: there is none
    StringRef why;
  };

  /// What a tree has no form of.
  static Refusal check(func::FuncOp forward) {
    Refusal refusal;
    forward.walk([&](Operation *op) -> WalkResult {
      auto attention = dyn_cast<AttentionOp>(op);
      if (attention && (attention.getMask() != MaskKind::Causal || attention.getBlocks()))
        refusal = {op, "expects a causal mask without blocks to verify trees with, but got another"};
      auto append = dyn_cast<KVAppendOp>(op);
      if (append && (append.getSlots() || append.getBase()))
        refusal = {op, "expects slots that are the positions, but got slots or a base of their own"};
      return refusal.op ? WalkResult::interrupt() : WalkResult::advance();
    });
    return refusal;
  }

  static void convert(func::FuncOp forward) {
    auto verify = cast<func::FuncOp>(forward->clone());
    verify.setSymName("verify");
    SymbolTable(forward->getParentOp()).insert(verify, std::next(forward->getIterator()));
    OpBuilder builder(verify.getBody());
    Location loc = verify.getLoc();
    Block &entry = verify.getBody().front();
    auto vector = [&](int64_t length) { return RankedTensorType::get({length}, builder.getI32Type()); };

    // (ids, positions, rows) ==> (tokens, parents, parameters, history, base)
    Value positions = entry.getArgument(1), rows = entry.getArgument(2);
    Value tokens = entry.getArgument(0);
    Value parents = entry.insertArgument(1u, vector(ShapedType::kDynamic), loc);
    Value parameters = entry.insertArgument(2u, vector(8), loc);
    Value history = entry.insertArgument(3u, vector(ShapedType::kDynamic), loc);
    Value base = entry.insertArgument(4u, vector(1), loc);
    builder.setInsertionPointToStart(&entry);
    auto mask = TreeMaskOp::create(builder, loc, parents, base);
    positions.replaceAllUsesWith(mask.getDepths());

    // Every node's logits are wanted.
    for (Operation *user : llvm::make_early_inc_range(rows.getUsers()))
      if (auto select = dyn_cast<SelectRowsOp>(user)) {
        select.getResult().replaceAllUsesWith(select.getInput());
        select.erase();
      }
    entry.eraseArguments(5, 2);

    llvm::SetVector<Value> caches;
    verify.walk([&](KVAppendOp append) {
      append.getBaseMutable().assign(base);
      caches.insert(append.getCache());
    });
    verify.walk([&](PreviousRowsOp previous) {
      previous.getParentsMutable().assign(parents);
      previous.getBaseMutable().assign(base);
    });
    verify.walk([&](AttentionOp attention) {
      builder.setInsertionPoint(attention);
      auto tree = TreeAttentionOp::create(
          builder, attention.getLoc(), attention.getType(), attention.getQuery(), attention.getCache(), base,
          mask.getMask(), attention.getPositions(), attention.getBias(), attention.getScaleAttr(),
          attention.getSoftcapAttr(), attention.getWindowAttr(), attention.getSinksAttr(), attention.getFirstAttr());
      attention.replaceAllUsesWith(tree.getResult());
      attention.erase();
    });

    auto exit = cast<func::ReturnOp>(entry.getTerminator());
    builder.setInsertionPoint(exit);
    auto drawn = TreeVerifyOp::create(builder, loc, exit.getOperand(0), tokens, parents, parameters, history, base);
    for (Value cache : caches) {
      // Handles may live inside layers.
      auto handle = cache.getDefiningOp<KVOp>();
      Value own = cast<KVOp>(builder.clone(*handle)).getHandle();
      KVCompactOp::create(builder, loc, own, base, drawn.getAccepted(), drawn.getCount());
    }
    exit->setOperands(drawn.getResults());
    verify.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), drawn.getResultTypes()));
  }
};

} // namespace
