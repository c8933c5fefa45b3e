// llm-lower-to-plan: see Passes.td.
#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/Drafts.h"
#include "codegen/Lowering/Passes.h"
#include "codegen/Lowering/ProgramLowering.h"
#include "codegen/Lowering/ReadAsNumbers.h"
#include "runtime/Format/Control.h"

namespace mlir::llm {
#define GEN_PASS_DEF_LOWERTOPLANPASS
#include "codegen/Lowering/Passes.h.inc"

namespace {

struct LowerToPlan final : impl::LowerToPlanPassBase<LowerToPlan> {
  using LowerToPlanPassBase::LowerToPlanPassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<plan::PlanDialect>();
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    if (!function || failed(checkFunction(function)))
      return function ? failure()
                      : module.emitError(
                            "expects a function @forward, but got none");
    if (targets.empty())
      return module.emitError("expects at least one target, but got none; give "
                              "targets=NAME[,NAME…]");
    if (treeNodes < 0 || treeNodes > sprig::format::kMostNodes)
      return module.emitError("expects trees of at most ")
             << sprig::format::kMostNodes << " nodes, but got tree-nodes="
             << treeNodes;
    std::vector<TargetProfile> profiles;
    int64_t widest = 1;
    for (StringRef name : targets) {
      llvm::Expected<TargetProfile> profile = findProfile(name);
      if (!profile)
        return module.emitError() << llvm::toString(profile.takeError());
      if (largestBinding > 0)
        profile->limits.storageRange =
            std::min(profile->limits.storageRange, uint64_t(largestBinding));
      if (!widths.empty())
        profile->widths.assign(widths.begin(), widths.end());
      std::vector<int64_t> &sizes = profile->widths;
      llvm::sort(sizes);
      sizes.erase(llvm::unique(sizes), sizes.end());
      if (sizes.front() != 1)
        return module.emitError("expects 1 among the widths, but the least is ")
               << sizes.front();
      widest = std::max(widest, sizes.back());
      profiles.push_back(std::move(*profile));
    }
    FailureOr<LoweringShape> shape = findShape(module, widest);
    if (failed(shape))
      return failure();

    readOddRowsAsNumbers(module);
    WeightTable weights(module);
    FlatFunction flat(function);
    // Made by llm-tree-verify, where trees are wanted.
    auto verify = module.lookupSymbol<func::FuncOp>("verify");
    std::optional<FlatFunction> trees;
    if (verify)
      trees.emplace(verify);
    // Made by llm-make-evict, where generation goes on past the context.
    auto evict = module.lookupSymbol<func::FuncOp>("evict");
    std::optional<FlatFunction> room;
    if (evict)
      room.emplace(evict);
    FailureOr<ArrayAttr> drafts = describeDrafts(module);
    if (failed(drafts))
      return failure();
    std::vector<FlatFunction> guesses;
    llvm::StringMap<int64_t> numbers;
    for (func::FuncOp draft : draftsOf(module)) {
      numbers[draft.getSymName()] = int64_t(guesses.size());
      guesses.emplace_back(draft);
    }
    std::vector<DraftTree> draftTrees;
    for (func::FuncOp tree : draftTreesOf(module)) {
      auto of = tree->getAttrOfType<FlatSymbolRefAttr>(kDraftTreeAttr);
      if (!of || !numbers.contains(of.getValue()))
        return tree.emitOpError("expects the tree form of a draft, but got ")
               << tree->getAttr(kDraftTreeAttr);
      draftTrees.push_back({FlatFunction(tree), numbers[of.getValue()]});
    }
    for (auto [name, profile] : llvm::zip_equal(targets, profiles))
      if (failed(lowerTarget(module, name, profile, *shape, flat,
                             trees ? &*trees : nullptr,
                             room ? &*room : nullptr, guesses, draftTrees,
                             weights)))
        return failure();
    describeModel(module, function, *shape);
    if (!drafts->empty())
      module->setAttr("plan.drafts", *drafts);
    for (FlatFunction &guess : guesses)
      guess.function().erase();
    for (DraftTree &tree : draftTrees)
      tree.function.function().erase();
    function.erase();
    if (verify)
      verify.erase();
    if (evict)
      evict.erase();
    for (auto cache : llvm::make_early_inc_range(module.getOps<KVCacheOp>()))
      cache.erase();
    return success();
  }

  /// The tree form of a draft, and the number of its guess.
  struct DraftTree {
    FlatFunction function;
    int64_t guess;
  };
  /// Trees of drafts grow by levels: widths between are not worth programs of
  /// their own.
  static bool isWidthOfDraftTrees(int64_t width) {
    return width >= 4 && llvm::isPowerOf2_64(uint64_t(width));
  }

  /// forward(ids, positions, rows) -> logits
  static LogicalResult checkFunction(func::FuncOp function) {
    FunctionType type = function.getFunctionType();
    auto isIds = [](Type input) {
      auto tensor = dyn_cast<RankedTensorType>(input);
      return tensor && tensor.getRank() == 1 &&
             tensor.getElementType().isInteger(32);
    };
    auto logits = type.getNumResults() == 1
                      ? dyn_cast<RankedTensorType>(type.getResult(0))
                      : nullptr;
    bool fits = type.getNumInputs() == 3 &&
                llvm::all_of(type.getInputs(), isIds) && logits &&
                logits.getRank() == 2 && !logits.isDynamicDim(1) &&
                function.getBody().hasOneBlock();
    if (!fits)
      return function.emitOpError("expects (ids, positions, rows: "
                                  "tensor<?xi32>) -> tensor<?xVxf32>, but got ")
             << type;
    return success();
  }

  FailureOr<LoweringShape> findShape(ModuleOp module, int64_t widest) {
    LoweringShape shape{context, widest};
    for (auto cache : module.getOps<KVCacheOp>())
      if (context == 0)
        shape.capacity =
            std::max(shape.capacity, cache.getCacheType().getCapacity());
    if (shape.capacity < 1)
      return module.emitError("expects a context of at least 1 slot, but got ")
             << shape.capacity;
    return shape;
  }

  LogicalResult lowerTarget(ModuleOp module, StringRef name,
                            const TargetProfile &profile,
                            const LoweringShape &shape,
                            const FlatFunction &flat, const FlatFunction *trees,
                            const FlatFunction *room,
                            ArrayRef<FlatFunction> guesses,
                            ArrayRef<DraftTree> draftTrees,
                            WeightTable &weights) {
    if (module.lookupSymbol(profile.name))
      return module.emitError("expects each target once, but got '")
             << profile.name << "' twice";
    TargetLowering target(module, profile, name, weights, shape);
    for (int64_t width : profile.widths)
      for (auto kind : {plan::ProgramKind::append, plan::ProgramKind::sample,
                        plan::ProgramKind::logits}) {
        if (kind == plan::ProgramKind::logits && width > logitWidths)
          continue;
        if (failed(ProgramLowering(target, flat, kind, width).run()))
          return failure();
      }
    // A tree of one node is a decode step.
    for (int64_t width : profile.widths)
      if (trees && width > 1 && width <= treeNodes &&
          failed(
              ProgramLowering(target, *trees, plan::ProgramKind::verify, width)
                  .run()))
        return failure();
    if (room &&
        failed(
            ProgramLowering(target, *room, plan::ProgramKind::evict, 1).run()))
      return failure();
    for (auto [number, guess] : llvm::enumerate(guesses))
      if (failed(ProgramLowering(target, guess, plan::ProgramKind::draft, 1,
                                 int64_t(number))
                     .run()))
        return failure();
    for (const DraftTree &tree : draftTrees)
      for (int64_t width : profile.widths)
        if (isWidthOfDraftTrees(width) && width <= treeNodes &&
            failed(ProgramLowering(target, tree.function,
                                   plan::ProgramKind::draft, width, tree.guess)
                       .run()))
          return failure();
    return success();
  }

  /// `llm.model`, with the context that was compiled, becomes `plan.model`.
  static void describeModel(ModuleOp module, func::FuncOp function,
                            const LoweringShape &shape) {
    Builder builder(module.getContext());
    NamedAttrList model(module->getAttrOfType<DictionaryAttr>("llm.model"));
    module->removeAttr("llm.model");
    if (Attribute trained = model.get("context"))
      model.set("trained_context", trained);
    model.set("context", builder.getI64IntegerAttr(shape.capacity));
    auto logits =
        cast<RankedTensorType>(function.getFunctionType().getResult(0));
    model.set("vocabulary", builder.getI64IntegerAttr(logits.getDimSize(1)));
    module->setAttr("plan.model", model.getDictionary(module.getContext()));
  }
};

} // namespace
} // namespace mlir::llm
