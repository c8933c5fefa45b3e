#include "transforms/Passes.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/Sites.h"
#include "transforms/Remarks.h"

#include <numeric>

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNEWIDTHPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-width";

namespace {

struct PruneWidthPass final : llm::impl::PruneWidthPassBase<PruneWidthPass> {
  using PruneWidthPassBase::PruneWidthPassBase;

  void runOnOperation() override {
    if (failed(checkShare(getOperation(), kPass, ratio)) || failed(checkUnit(getOperation(), kPass, unit)))
      return signalPassFailure();
    FailureOr<SitePruner> made = SitePruner::create(getOperation(), {kPass, score, recover, tokens, window});
    if (failed(made))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(prune(function, *made)))
        return signalPassFailure();
  }

private:
  LogicalResult prune(func::FuncOp function, SitePruner &pruner) {
    ChannelGroups groups(function);
    ChannelGroup *residual = nullptr;
    function.walk([&](EmbeddingOp embedding) { residual = groups.of(embedding.getResult(), 1); });
    if (!residual)
      return success();
    if (!residual->fixed.empty())
      return function.emitOpError("has a residual that cannot lose channels: ") << residual->fixed;
    const int64_t block = blockOfChannels(*residual, unit), size = residual->size;
    const int64_t removed = int64_t(double(ratio) * double(size)) / block * block;
    if (removed == 0)
      return success();
    FailureOr<std::vector<double>> value = measure(function, *residual, pruner);
    if (failed(value))
      return failure();
    const SmallVector<int64_t> kept = largest(*value, size - removed);
    Narrower narrower(pruner.weights(), pruner.newWeights());
    narrower.measures = PruneReport::of(&getContext()) != nullptr;
    if (recover && failed(refit(function, pruner, *residual, kept, narrower)))
      return failure();
    if (failed(narrower.narrow(*residual, kept)))
      return failure();
    if (PruneReport *page = PruneReport::of(&getContext()))
      page->records.push_back({kPass.str(), "channels of the residual", -1, removed, size, -1, narrower.lost});
    report(function, kPass, Twine(removed) + " of " + Twine(size) + " channels of the residual removed");
    describeModel(getOperation(), "width", size - removed);
    return success();
  }

  static StatisticsRequest readersOf(const ChannelGroup &residual, bool gram) {
    llvm::DenseSet<Operation *> readers;
    for (const ChannelUse &use : residual.uses)
      if (use.isColumns())
        readers.insert(use.owner());
    StatisticsRequest request;
    request.wants = [readers](Operation *op) { return readers.contains(op); };
    request.gram = gram;
    return request;
  }

  LogicalResult gather(func::FuncOp function, const SitePruner &pruner, const StatisticsRequest &request,
                       LayerCallback callback) {
    ActivationSource *source = pruner.activations(function);
    return source ? source->statistics(function, {tokens, window}, request, callback) : failure();
  }

  /// Every product's say counts the same: what it loses without a channel, as a share of what it gives.
  FailureOr<std::vector<double>> measure(func::FuncOp function, const ChannelGroup &residual, SitePruner &pruner) {
    if (score != "wanda")
      return pruner.scores(residual, {});
    std::vector<double> sums(size_t(residual.size), 0);
    LogicalResult done = gather(
        function, pruner, readersOf(residual, false),
        [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
          for (const ChannelUse &use : residual.uses) {
            auto found = inputs.find(use.owner());
            if (!use.isColumns() || found == inputs.end())
              continue;
            std::vector<double> own(size_t(residual.size), 0);
            if (failed(addSquares(use, residual.size, found->second->squares, pruner.weights(), own)))
              return failure();
            const double total = std::accumulate(own.begin(), own.end(), 1e-300);
            for (auto [sum, each] : llvm::zip(sums, own))
              sum += each / total;
          }
          return LayerChange::None;
        });
    if (failed(done))
      return failure();
    return sums;
  }

  /// New columns for each product that reads the residual, but for a table that is also the embedding's.
  LogicalResult refit(func::FuncOp function, const SitePruner &pruner, ChannelGroup &residual, ArrayRef<int64_t> kept,
                      Narrower &narrower) {
    llvm::DenseMap<Value, unsigned> readers;
    for (const ChannelUse &use : residual.uses)
      ++readers[use.operand->get()];
    return gather(function, pruner, readersOf(residual, true),
                  [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                    for (const ChannelUse &use : residual.uses) {
                      auto found = inputs.find(use.owner());
                      const Value weight = use.operand->get();
                      if (use.isColumns() && found != inputs.end() && readers[weight] == 1 &&
                          cast<ShapedType>(weight.getType()).getRank() == 2 &&
                          failed(narrower.prepare(residual, use, kept, found->second->gram)))
                        return failure();
                    }
                    return LayerChange::None;
                  });
  }
};

} // namespace
