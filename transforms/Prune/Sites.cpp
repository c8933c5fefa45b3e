#include "transforms/Prune/Sites.h"

#include "transforms/Prune/Rewrite.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Remarks.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;

int64_t mlir::llm::blockOfChannels(const ChannelGroup &group, int64_t unit) {
  int64_t channels = 1;
  for (const ChannelUse &use : group.uses)
    if (use.isColumns()) {
      const int64_t block = std::lcm(blockOf(cast<RankedTensorType>(use.operand->get().getType())), unit);
      channels = std::lcm(channels, block / std::gcd(block, use.outer * use.inner));
    }
  return channels;
}

int64_t mlir::llm::unitOfChannels(const ChannelGroup &group, int64_t unit) {
  int64_t channels = 1;
  for (const ChannelUse &use : group.uses)
    if (use.isColumns())
      channels = std::lcm(channels, unit / std::gcd(unit, use.outer * use.inner));
  return channels;
}

LogicalResult mlir::llm::addSquares(const ChannelUse &use, int64_t channels, ArrayRef<double> factors,
                                    WeightStore &store, MutableArrayRef<double> sums) {
  FailureOr<Matrix> weight = readMatrix(use.operand->get(), store, use.owner());
  if (failed(weight))
    return failure();
  const auto shape = cast<ShapedType>(use.operand->get().getType()).getShape();
  const bool columns = use.axis + 1 == int64_t(shape.size());
  int64_t below = 1; // leading dimensions count as rows
  for (size_t d = size_t(use.axis) + 1; d + 1 < shape.size(); ++d)
    below *= shape[d];
  for (int64_t n = 0; n < weight->N; ++n)
    for (auto [k, w] : llvm::enumerate(weight->row(n))) {
      const int64_t index = columns ? int64_t(k) : n / below % shape[size_t(use.axis)];
      sums[size_t(index / use.inner % channels)] += double(w) * w * (factors.empty() ? 1 : factors[k]);
    }
  return success();
}

LogicalResult mlir::llm::checkShare(ModuleOp module, StringRef pass, double ratio) {
  if (ratio >= 0 && ratio < 1)
    return success();
  return module.emitError() << pass << " expects a ratio from 0 to below 1, but got " << ratio;
}

LogicalResult mlir::llm::checkUnit(ModuleOp module, StringRef pass, int64_t unit) {
  if (unit >= 1 && unit <= 4096)
    return success();
  return module.emitError() << pass << " expects a unit of 1 to 4096 channels, but got " << unit;
}

LogicalResult mlir::llm::checkNotFused(ModuleOp module, StringRef pass) {
  Operation *fused = nullptr;
  module.walk([&](Operation *op) {
    if (isa<RmsScaleOp, GatedLinearOp>(op))
      fused = op;
    return fused ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!fused)
    return success();
  return module.emitError() << pass << " expects products as they are imported, but got IR that is fused ('"
                            << fused->getName().getStringRef() << "'): start from the model, or IR of llm-import";
}

ActivationSource *SitePruner::activations(func::FuncOp function) const {
  ActivationSource *source = ActivationSource::of(function.getContext());
  if (!source)
    function.emitOpError("needs activations for ")
        << (settings.recover ? StringRef("recovery") : StringRef("the score wanda"))
        << ": name a text with --calibrate";
  return source;
}

FailureOr<SitePruner> SitePruner::create(ModuleOp module, PruneSettings settings) {
  if (settings.score != "random" && settings.score != "magnitude" && settings.score != "wanda" && settings.score != kNoScore)
    return module.emitError() << settings.pass << " expects a score random, magnitude or wanda, but got '"
                              << settings.score << "'",
           failure();
  WeightStore *store = weightStoreOf(module);
  WeightSpill *spill = store ? store->spill(module) : nullptr;
  if (!spill)
    return failure();
  return SitePruner(module, std::move(settings), store, spill);
}

FailureOr<std::vector<double>> SitePruner::scores(const ChannelGroup &group, const LayerStatistics &inputs) {
  std::vector<double> result(size_t(group.size), 0);
  if (settings.score == kNoScore) {
    std::fill(result.begin(), result.end(), 1);
    return result;
  }
  if (settings.score == "random") {
    std::uniform_real_distribution<double> uniform;
    for (double &value : result)
      value = uniform(random);
    return result;
  }
  for (const ChannelUse &use : group.uses) {
    const bool product = llvm::is_contained(productWeights(use.owner()), use.operand);
    const auto found = inputs.find(use.owner());
    if (settings.score == "magnitude" ? !product : !use.isColumns() || found == inputs.end())
      continue;
    const ArrayRef<double> factors =
        settings.score == "magnitude" ? ArrayRef<double>() : ArrayRef<double>(found->second->squares);
    if (failed(addSquares(use, group.size, factors, *store, result)))
      return failure();
  }
  return result;
}

PruneRecord SitePruner::recordOf(const PruneSite &site, const ChannelCut &cut, int64_t before,
                                 ArrayRef<std::vector<double>> scores,
                                 const LostShares &lost) const {
  PruneRecord record{settings.pass.str(), site.what, -1, before - int64_t(cut.kept.size()), before, -1, lost};
  if (auto layer = site.at->getParentOfType<LayerOp>())
    record.layer = int64_t(layer.getIndex());
  for (auto [group, values] : llvm::zip(site.groups, scores)) {
    if (group != cut.group)
      continue;
    double all = 0, kept = 0;
    for (double value : values)
      all += value;
    for (int64_t c : cut.kept)
      kept += values[size_t(c)];
    record.score = all > 0 ? std::max(0.0, 1 - kept / all) : -1;
  }
  return record;
}

LogicalResult SitePruner::prune(PruneSite &site, const LayerStatistics &inputs) {
  SmallVector<std::vector<double>> values;
  for (ChannelGroup *group : site.groups) {
    FailureOr<std::vector<double>> value = scores(*group, inputs);
    if (failed(value))
      return failure();
    values.push_back(std::move(*value));
  }
  FailureOr<SmallVector<ChannelCut>> cuts = site.choose(values, inputs);
  if (failed(cuts))
    return failure();
  InputMoments moments;
  if (settings.recover)
    for (auto &[product, statistics] : inputs)
      if (!statistics->gram.empty())
        moments[product] = statistics->gram;
  PruneReport *page = settings.quiet ? nullptr : PruneReport::of(module.getContext());
  Narrower narrower(*store, *spill);
  narrower.measures = page != nullptr;
  for (ChannelCut &cut : *cuts) {
    const int64_t before = cut.group->size;
    narrower.lost = {};
    if (failed(narrower.narrow(*cut.group, cut.kept, moments)))
      return failure();
    if (before != cut.group->size && !settings.quiet)
      report(site.at, settings.pass,
             Twine(before - cut.group->size) + " of " + Twine(before) + " " + site.what + " removed");
    if (page && before != cut.group->size)
      page->records.push_back(recordOf(site, cut, before, values, narrower.lost));
    // What one group took away, the others' readers no longer have.
    if (before != cut.group->size)
      for (const ChannelUse &use : cut.group->uses)
        if (use.isColumns())
          moments.erase(use.owner());
  }
  return success();
}

LogicalResult SitePruner::run(func::FuncOp function, MutableArrayRef<PruneSite> sites) {
  if (sites.empty())
    return success();
  if (!settings.needsText()) {
    for (PruneSite &site : sites)
      if (failed(prune(site, {})))
        return failure();
    return retypeCaches(module);
  }
  ActivationSource *source = activations(function);
  if (!source)
    return failure();
  llvm::DenseSet<Operation *> readers;
  for (const PruneSite &site : sites)
    for (const ChannelGroup *group : site.groups)
      for (const ChannelUse &use : group->uses)
        if (use.isColumns() || (site.wantsMakers && llvm::is_contained(productWeights(use.owner()), use.operand)))
          readers.insert(use.owner());
  StatisticsRequest request;
  request.wants = [&](Operation *op) { return readers.contains(op); };
  request.gram = settings.recover;
  LogicalResult done = source->statistics(
      function, {settings.tokens, settings.window}, request,
      [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
        for (PruneSite &site : sites)
          if (layer->isAncestor(site.at) && failed(prune(site, inputs)))
            return failure();
        return LayerChange::Rewritten;
      });
  return failed(done) ? done : retypeCaches(module);
}
