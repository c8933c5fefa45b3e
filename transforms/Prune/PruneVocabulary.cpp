#include "lib/Weights/WeightSpill.h"
#include "transforms/Passes.h"
#include "transforms/Prune/Channels.h"
#include "transforms/Prune/Narrow.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNEVOCABULARYPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-vocabulary";

namespace {

struct PruneVocabularyPass final : llm::impl::PruneVocabularyPassBase<PruneVocabularyPass> {
  using PruneVocabularyPassBase::PruneVocabularyPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto tokenizers = module.getOps<TokenizerOp>();
    if (tokenizers.empty() || !(*tokenizers.begin()).getKeep())
      return;
    TokenizerOp tokenizer = *tokenizers.begin();
    const ArrayRef<int32_t> ids = *tokenizer.getKeep();
    const SmallVector<int64_t> keep(ids.begin(), ids.end());
    WeightStore *store = weightStoreOf(module);
    WeightSpill *spill = store ? store->spill(module) : nullptr;
    if (!spill)
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(prune(function, keep, *store, *spill)))
        return signalPassFailure();
    describeModel(module, "vocabulary", int64_t(keep.size()));
  }

private:
  LogicalResult prune(func::FuncOp function, ArrayRef<int64_t> keep, WeightStore &store, WeightSpill &spill) {
    // Rows of the table that token ids choose from; positions have tables, too.
    ChannelGroup vocabulary;
    function.walk([&](EmbeddingOp embedding) {
      if (embedding.getIds() != function.getArgument(0))
        return;
      vocabulary.uses.push_back({&embedding.getTableMutable(), 0});
      vocabulary.size = cast<ShapedType>(embedding.getTable().getType()).getDimSize(0);
    });
    if (vocabulary.uses.empty() || vocabulary.size == int64_t(keep.size()))
      return success();
    for (int64_t id : keep)
      if (id >= vocabulary.size)
        return function.emitOpError("has a vocabulary of ")
               << vocabulary.size << ", but the tokenizer keeps token " << id;
    const ChannelGroups groups(function);
    auto result = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    ChannelGroup *logits = result.getNumOperands() ? groups.of(result.getOperand(0), 1) : nullptr;
    if (logits && logits->size == vocabulary.size) {
      if (!logits->fixed.empty())
        return function.emitOpError("has logits that cannot become fewer: ") << logits->fixed;
      vocabulary.uses.append(logits->uses);
      vocabulary.values = logits->values;
    }
    const int64_t removed = vocabulary.size - int64_t(keep.size());
    Narrower narrower(store, spill);
    if (failed(narrower.narrow(vocabulary, keep)))
      return failure();
    function.setFunctionType(FunctionType::get(&getContext(), function.getArgumentTypes(), result.getOperandTypes()));
    report(function, kPass, Twine(removed) + " of " + Twine(removed + int64_t(keep.size())) + " tokens removed");
    return success();
  }
};

} // namespace
