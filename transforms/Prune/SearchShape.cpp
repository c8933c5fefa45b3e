#include "codegen/Target/TargetProfile.h"
#include "lib/Calibration/ActivationSource.h"
#include "lib/Weights/WeightTypes.h"
#include "transforms/Passes.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/SiteKinds.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mlir::llm {
#define GEN_PASS_DEF_SEARCHSHAPEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-search-shape";

namespace {

/// Energy of the residual where a layer begins: what an error that the layer makes is measured by.
class ResidualEnergy final : public ActivationVisitor {
public:
  bool wants(Operation *op) override { return isa<LayerOp>(op); }
  LogicalResult visit(Operation *op, int64_t, const ActivationRows &, const ActivationRows &output) override {
    double &sum = sums[op];
    for (float x : output.numbers)
      sum += double(x) * x;
    return success();
  }
  std::map<Operation *, double> sums;
};

/// One step of a site: a unit of its channels less.
struct Step {
  size_t site;
  double loss, bytes;
};

struct SearchShapePass final : llm::impl::SearchShapePassBase<SearchShapePass> {
  using SearchShapePassBase::SearchShapePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto functions = llvm::make_filter_range(module.getOps<func::FuncOp>(), [](auto f) { return !f.isExternal(); });
    if (functions.empty() || failed(search(module, *functions.begin())))
      return signalPassFailure();
  }

private:
  struct Site {
    SiteKind kind;
    ChannelGroup *group;
    int64_t size, unit, stay, least;
    double bytesPerChannel = 0;
    std::vector<double> losses; ///< of taking one unit more, ascending
  };

  static double bytesOf(Value weight) {
    auto type = cast<RankedTensorType>(weight.getType());
    return storedBits(type.getElementType()) / 8 * double(type.getNumElements());
  }

  /// Bytes of weights that may stay.
  FailureOr<double> budget(ModuleOp module, double all) {
    if (milliseconds > 0) {
      auto profile = findProfile(target);
      if (!profile)
        return module.emitError() << kPass << ": " << ::llvm::toString(profile.takeError()), failure();
      // A decode step reads every weight once.
      return milliseconds * 1e-3 * profile->rates.readGbPerSecond * 1e9;
    }
    if (!(bytes > 0 && bytes <= 1))
      return module.emitError() << kPass << " expects a share of the bytes between 0 and 1, but got " << double(bytes),
             failure();
    return bytes * all;
  }

  LogicalResult search(ModuleOp module, func::FuncOp function) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to know what matters: name a text with --calibrate");
    double all = 0;
    llvm::StringSet<> keys;
    function.walk([&](WeightOp weight) {
      if (!weight.getKey() || keys.insert(*weight.getKey()).second)
        all += bytesOf(weight);
    });
    FailureOr<double> allowed = budget(module, all);
    if (failed(allowed))
      return failure();

    const ChannelGroups groups(function);
    std::vector<Site> sites;
    for (SiteKind kind : {SiteKind::FeedForward, SiteKind::QueryHeads})
      if (failed(collect(kind, function, groups, sites)))
        return failure();
    ResidualEnergy energy;
    if (failed(source->visit(function, {tokens, window}, energy)) ||
        failed(measure(module, function, *source, energy, sites)))
      return failure();

    std::vector<Step> steps;
    for (auto [i, site] : llvm::enumerate(sites))
      for (double loss : site.losses)
        steps.push_back({i, loss, site.bytesPerChannel * double(site.unit)});
    llvm::sort(steps, [](const Step &a, const Step &b) {
      const double first = a.loss / a.bytes, second = b.loss / b.bytes;
      return first != second ? first < second : a.site < b.site;
    });
    double left = all;
    for (const Step &step : steps) {
      if (left <= *allowed)
        break;
      Site &site = sites[step.site];
      if (site.stay - site.unit < site.least)
        continue;
      site.stay -= site.unit, left -= step.bytes;
    }
    if (left > *allowed)
      return function.emitOpError("has ")
             << int64_t(all) << " bytes of weights, of which channels and heads can give " << int64_t(all - left)
             << "; the budget is " << int64_t(*allowed) << " bytes: take layers or the vocabulary first, or fewer bits";
    for (SiteKind kind : {SiteKind::QueryHeads, SiteKind::FeedForward}) {
      SmallVector<const Site *> own;
      for (const Site &site : sites)
        if (site.kind == kind)
          own.push_back(&site);
      const PruneSettings settings{kPass, "wanda", recover, tokens, window};
      if (failed(pruneSites(module, kind, settings,
                            [&](const SiteSize &site) -> FailureOr<int64_t> { return own[size_t(site.index)]->stay; })))
        return failure();
    }
    report(function, kPass, Twine(int64_t(left)) + " of " + Twine(int64_t(all)) + " bytes of weights stay");
    return success();
  }

  LogicalResult collect(SiteKind kind, func::FuncOp function, const ChannelGroups &groups, std::vector<Site> &sites) {
    // The rule is asked about every site; that it takes a unit from each makes the sites known.
    const size_t first = sites.size();
    FailureOr<std::vector<PruneSite>> found =
        sitesOf(kind, function, groups, [&](const SiteSize &site) -> FailureOr<int64_t> {
          sites.push_back({kind, nullptr, site.size, site.unit, site.size, site.unit, 0, {}});
          return site.size > site.unit ? site.size - site.unit : site.size;
        });
    if (failed(found))
      return failure();
    size_t next = first;
    for (const PruneSite &site : *found) {
      while (sites[next].size <= sites[next].unit)
        ++next;
      Site &own = sites[next++];
      own.group = site.groups.front();
      for (const ChannelUse &use : own.group->uses)
        own.bytesPerChannel += bytesOf(use.operand->get()) / double(own.size);
    }
    return success();
  }

  /// What the output of a block loses without each of its channels, as a share of the residual that it is added to; the
  /// least ones go first, a unit at a time.
  LogicalResult measure(ModuleOp module, func::FuncOp function, ActivationSource &source, ResidualEnergy &energy,
                        std::vector<Site> &sites) {
    FailureOr<SitePruner> pruner = SitePruner::create(module, {kPass, "wanda", recover, tokens, window});
    if (failed(pruner))
      return failure();
    llvm::DenseSet<Operation *> readers;
    for (const Site &site : sites)
      if (site.group)
        for (const ChannelUse &use : site.group->uses)
          if (use.isColumns())
            readers.insert(use.owner());
    StatisticsRequest request;
    request.wants = [&](Operation *op) { return readers.contains(op); };
    request.gram = false;
    return source.statistics(
        function, {tokens, window}, request,
        [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
          for (Site &site : sites) {
            if (!site.group || site.group->layer() != layer)
              continue;
            FailureOr<std::vector<double>> scores = pruner->scores(*site.group, inputs);
            if (failed(scores))
              return failure();
            std::vector<double> sorted = *scores;
            if (site.kind == SiteKind::QueryHeads)
              sorted = perGroup(*scores, site.unit);
            llvm::sort(sorted);
            const size_t each = site.kind == SiteKind::QueryHeads ? 1 : size_t(site.unit);
            for (size_t i = 0; i + each <= sorted.size(); i += each)
              site.losses.push_back(std::accumulate(sorted.begin() + ptrdiff_t(i), sorted.begin() + ptrdiff_t(i + each), 0.0) /
                                    std::max(energy.sums[layer], 1e-300));
          }
          return LayerChange::None;
        });
  }

  /// Heads go as many of each key-value head: the n-th worst of all of them together.
  static std::vector<double> perGroup(std::vector<double> scores, int64_t groups) {
    const size_t shared = scores.size() / size_t(groups);
    std::vector<double> sums(shared, 0);
    for (size_t g = 0; g < size_t(groups); ++g) {
      std::sort(scores.begin() + ptrdiff_t(g * shared), scores.begin() + ptrdiff_t((g + 1) * shared));
      for (size_t i = 0; i < shared; ++i)
        sums[i] += scores[g * shared + i];
    }
    return sums;
  }
};

} // namespace
