// llm-make-draft: see Passes.td.
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"
#include "transforms/Speculation/LayerChoice.h"
#include "transforms/Speculation/LayerHeads.h"

namespace mlir::llm {
#define GEN_PASS_DEF_MAKEDRAFTPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-make-draft", kName = "guess_self";

/// "3+7-9" of {3, 7, 8, 9}.
static std::string rangesOf(ArrayRef<int64_t> numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    text += (text.empty() ? "" : "+") + std::to_string(numbers[i]);
    if (end > i + 1)
      text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

namespace {

struct MakeDraftPass final : llm::impl::MakeDraftPassBase<MakeDraftPass> {
  using MakeDraftPassBase::MakeDraftPassBase;

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult run(ModuleOp module) {
    if (module.lookupSymbol(kName))
      return module.emitError() << "expects a model without a draft @" << kName << ", but it has one";
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || !forward.getBody().hasOneBlock())
      return module.emitError("expects a function @forward to make a draft of, but got none");
    FailureOr<SmallVector<int64_t>> skipped = choose(forward);
    if (failed(skipped))
      return failure();
    if (skipped->empty() && passes.empty())
      return forward.emitOpError("expects layers or passes by which a draft is cheaper, but got neither");
    std::string description = note;
    if (!skipped->empty()) {
      SmallVector<int64_t> indices;
      for (auto [place, layer] : llvm::enumerate(forward.getOps<LayerOp>()))
        if (llvm::is_contained(*skipped, int64_t(place)))
          indices.push_back(int64_t(layer.getIndex()));
      description = "skip:" + rangesOf(indices) + (description.empty() ? "" : "," + description);
    }
    FailureOr<func::FuncOp> draft = passes.empty() ? cast<func::FuncOp>(forward->clone()) : rewritten(module, *skipped);
    if (failed(draft))
      return failure();
    if (passes.empty())
      removeLayers(*draft, *skipped);
    removeHeadUpkeep(*draft);
    draft->setSymName(kName);
    Builder builder(&getContext());
    (*draft)->setAttr("llm.draft", builder.getDictionaryAttr(
                                       {builder.getNamedAttr("name", builder.getStringAttr("self")),
                                        builder.getNamedAttr("description", builder.getStringAttr(description)),
                                        builder.getNamedAttr("repeats", builder.getBoolAttr(true))}));
    SymbolTable(module).insert(*draft, std::next(forward->getIterator()));
    report(*draft, kPass, "guesses by " + description + measured);
    return success();
  }

  /// Places of the layers that go.
  FailureOr<SmallVector<int64_t>> choose(func::FuncOp forward) {
    const auto all = llvm::to_vector(forward.getOps<LayerOp>());
    SmallVector<int64_t> places;
    for (int64_t index : layers) {
      auto found = llvm::find_if(all, [&](LayerOp layer) { return int64_t(layer.getIndex()) == index; });
      if (found == all.end())
        return forward.emitOpError("expects to leave out layers that it has, but has no layer ") << index;
      places.push_back(found - all.begin());
    }
    llvm::sort(places);
    places.erase(llvm::unique(places), places.end());
    if (!layers.empty() && skip != 0)
      return forward.emitOpError("expects layers, or a number of them to skip, but got both");
    const int64_t count = layers.empty() ? int64_t(skip) : int64_t(places.size());
    if (count < -1 || count >= int64_t(all.size()))
      return forward.emitOpError("expects to leave out 0 to ")
             << int64_t(all.size()) - 1 << " of its layers, but got " << count;
    if (!layers.empty() || count == 0)
      return places;
    ActivationSource *text = ActivationSource::of(&getContext());
    if (!text)
      return layersByRule(int64_t(all.size()), count < 0 ? int64_t(all.size()) / 3 : count);
    const CalibrationOptions options{std::min<int64_t>(tokens, text->available()), window};
    FailureOr<LayerChoice> choice = layersByText(forward, count, *text, options);
    if (failed(choice))
      return failure();
    measured = llvm::formatv(", {0:P0} of the answers at {1:P0} of the bytes", choice->agreement, choice->cost).str();
    return choice->skipped;
  }

  /// @forward of a copy of the module, without layers and after the passes.
  FailureOr<func::FuncOp> rewritten(ModuleOp module, ArrayRef<int64_t> skipped) {
    std::string message;
    llvm::raw_string_ostream os(message);
    OpPassManager pipeline(ModuleOp::getOperationName());
    if (failed(parsePassPipeline(passes, pipeline, os)))
      return module.emitError() << "expects passes for the draft, but got '" << passes << "': " << message;
    auto copy = cast<ModuleOp>(module->clone());
    for (auto function : llvm::make_early_inc_range(copy.getOps<func::FuncOp>()))
      if (function.getSymName() != "forward")
        function.erase();
    auto function = copy.lookupSymbol<func::FuncOp>("forward");
    removeLayers(function, skipped);
    // Passes run on what the pass is given, or below it.
    copy->removeAttr(SymbolTable::getSymbolAttrName());
    module.push_back(copy);
    LogicalResult done = runPipeline(pipeline, copy);
    function = copy.lookupSymbol<func::FuncOp>("forward");
    if (succeeded(done))
      done = takeSources(module, copy, function);
    if (failed(done)) {
      copy.erase();
      return failure();
    }
    function->remove();
    copy.erase();
    return function;
  }

  /// New weights lie in a file that the module may not know yet.
  static LogicalResult takeSources(ModuleOp module, ModuleOp copy, func::FuncOp function) {
    for (auto cache : copy.getOps<KVCacheOp>()) {
      auto own = module.lookupSymbol<KVCacheOp>(cache.getSymName());
      if (!own || own.getCacheType() != cache.getCacheType() || own.getCount() != cache.getCount())
        return function.emitOpError("expects passes that leave the caches as they are, but they changed @")
               << cache.getSymName();
    }
    for (auto source : copy.getOps<SourceOp>()) {
      auto own = module.lookupSymbol<SourceOp>(source.getSymName());
      if (!own) {
        OpBuilder builder(module.getBodyRegion());
        builder.clone(*source);
      } else if (own.getPath() != source.getPath()) {
        return function.emitOpError("expects sources of its own names, but @") << source.getSymName() << " is another";
      }
    }
    return success();
  }

  std::string measured;
};

} // namespace
