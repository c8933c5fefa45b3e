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
    if (Refusal refusal = check(forward); !refusal.op) {
      addVerify(forward);
      addDrafts(module);
    } else if (ifPossible)
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
      if (attention && attention.getMask() != MaskKind::Causal)
        refusal = {op, "expects a causal mask to verify trees with, but got another"};
      auto append = dyn_cast<KVAppendOp>(op);
      if (append && (append.getSlots() || append.getBase()))
        refusal = {op, "expects slots that are the positions, but got slots or a base of their own"};
      return refusal.op ? WalkResult::interrupt() : WalkResult::advance();
    });
    return refusal;
  }

  /// A copy of `function` over the nodes of a tree, with the logits of all of them; arguments are those of @verify, and
  /// behind them a hidden state that the function takes.
  struct OverTree {
    func::FuncOp function;
    llvm::SetVector<Value> caches;
    Value argument(unsigned number) { return function.getArgument(number); }
  };
  static OverTree overTree(func::FuncOp function, const Twine &name) {
    OverTree made{cast<func::FuncOp>(function->clone()), {}};
    func::FuncOp verify = made.function;
    verify.setSymName(name.str());
    SymbolTable(function->getParentOp()).insert(verify, std::next(function->getIterator()));
    OpBuilder builder(verify.getBody());
    Location loc = verify.getLoc();
    Block &entry = verify.getBody().front();
    auto vector = [&](int64_t length) { return RankedTensorType::get({length}, builder.getI32Type()); };

    // (ids, positions, rows, …) ==> (tokens, parents, parameters, history, base, …)
    Value positions = entry.getArgument(1), rows = entry.getArgument(2);
    Value parents = entry.insertArgument(1u, vector(ShapedType::kDynamic), loc);
    entry.insertArgument(2u, vector(8), loc);
    entry.insertArgument(3u, vector(ShapedType::kDynamic), loc);
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

    verify.walk([&](KVAppendOp append) {
      append.getBaseMutable().assign(base);
      made.caches.insert(append.getCache());
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
          attention.getSoftcapAttr(), attention.getWindowAttr(), attention.getSinksAttr(),
          attention.getBlocksAttr(), attention.getFirstAttr(), attention.getIntegersAttr());
      attention.replaceAllUsesWith(tree.getResult());
      attention.erase();
    });

    verify.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), verify.getResultTypes()));
    return made;
  }

  static void addVerify(func::FuncOp forward) {
    OverTree tree = overTree(forward, "verify");
    func::FuncOp verify = tree.function;
    Location loc = verify.getLoc();
    auto exit = cast<func::ReturnOp>(verify.getBody().front().getTerminator());
    OpBuilder builder(exit);
    Value base = tree.argument(4);
    auto drawn = TreeVerifyOp::create(builder, loc, exit.getOperand(0), tree.argument(0), tree.argument(1),
                                      tree.argument(2), tree.argument(3), base);
    for (Value cache : tree.caches) {
      // Handles may live inside layers.
      auto handle = cache.getDefiningOp<KVOp>();
      Value own = cast<KVOp>(builder.clone(*handle)).getHandle();
      KVCompactOp::create(builder, loc, own, base, drawn.getAccepted(), drawn.getCount());
    }
    exit->setOperands(drawn.getResults());
    verify.setFunctionType(builder.getFunctionType(verify.getArgumentTypes(), drawn.getResultTypes()));
  }

  /// Whether a draft says at every node of a tree what may follow it: where it reads tokens alone, or besides what its
  /// own guess at the node before left.
  static bool growsTrees(func::FuncOp draft) {
    auto facts = draft->getAttrOfType<DictionaryAttr>("llm.draft");
    if (!facts || check(draft).op)
      return false;
    if (draft.getNumArguments() == 3)
      return draft.getNumResults() == 1;
    auto hidden = facts.getAs<StringAttr>("hidden");
    return draft.getNumArguments() == 4 && draft.getNumResults() == 2 && hidden && hidden.getValue() == "own";
  }
  static void addDrafts(ModuleOp module) {
    for (auto draft : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!growsTrees(draft))
        continue;
      func::FuncOp tree = overTree(draft, draft.getSymName() + "_tree").function;
      for (auto mask : llvm::make_early_inc_range(tree.getOps<TreeMaskOp>()))
        if (mask->use_empty()) // heads without attention
          mask.erase();
      tree->removeAttr("llm.draft");
      tree->setAttr("llm.draft_tree", FlatSymbolRefAttr::get(draft.getSymNameAttr()));
    }
  }
};

} // namespace
