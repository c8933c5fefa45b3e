#include "codegen/Target/TargetProfile.h"
#include "lib/Calibration/ActivationSource.h"
#include "lib/Weights/WeightTypes.h"
#include "transforms/Passes.h"
#include "transforms/Prune/ShapeTrial.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace mlir::llm {
#define GEN_PASS_DEF_SEARCHSHAPEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-search-shape";

namespace {

/// Sites of one kind in layers that follow one another, which are tried out together.
struct Band {
  size_t begin, end;
};

struct SearchShapePass final : llm::impl::SearchShapePassBase<SearchShapePass> {
  using SearchShapePassBase::SearchShapePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto functions = llvm::make_filter_range(module.getOps<func::FuncOp>(), [](auto f) { return !f.isExternal(); });
    if (failed(checkUnit(module, kPass, unit)) || failed(checkNotFused(module, kPass)))
      return signalPassFailure();
    if (functions.empty() || failed(search(module, *functions.begin())))
      return signalPassFailure();
  }

private:
  struct Budget {
    double all, allowed;
    StringRef what;
  };

  FailureOr<double> shareOf(ModuleOp module, StringRef option, double share) {
    if (share > 0 && share <= 1)
      return share;
    return module.emitError() << kPass << " expects a share between 0 and 1 in " << option << ", but got " << share,
           failure();
  }

  FailureOr<Budget> budgetOf(ModuleOp module, func::FuncOp function) {
    const double time = milliseconds;
    const bool timed = time != -1;
    if (timed && !(time > 0 && std::isfinite(time)))
      return module.emitError() << kPass << " expects milliseconds above 0, but got " << time, failure();
    if (!timed && !target.empty())
      return module.emitError() << kPass << " expects a target only beside milliseconds, but got '" << target.getValue()
                                << "' alone",
             failure();
    const int asked = int(bytes != 1) + int(timed) + int(kvBytes != 1);
    if (asked > 1)
      return module.emitError() << kPass << " expects one budget of bytes, kv-bytes and milliseconds, but got " << asked,
             failure();
    if (kvBytes != 1) {
      FailureOr<double> share = shareOf(module, "kv-bytes", kvBytes);
      const double all = kvBytesOf(function);
      return failed(share) ? FailureOr<Budget>(failure()) : Budget{all, *share * all, "bytes of a token's keys and values"};
    }
    double all = 0;
    llvm::StringSet<> keys;
    function.walk([&](WeightOp weight) {
      const auto type = cast<RankedTensorType>(weight.getType());
      if (!weight.getKey() || keys.insert(*weight.getKey()).second)
        all += storedBits(type.getElementType()) / 8 * double(type.getNumElements());
    });
    if (timed) {
      auto profile = findProfile(target.empty() ? "generic" : target.getValue());
      if (!profile)
        return module.emitError() << kPass << ": " << ::llvm::toString(profile.takeError()), failure();
      // A decode step reads every weight once.
      return Budget{all, time * 1e-3 * profile->rates.readGbPerSecond * 1e9, "bytes of weights"};
    }
    FailureOr<double> share = shareOf(module, "bytes", bytes);
    return failed(share) ? FailureOr<Budget>(failure()) : Budget{all, *share * all, "bytes of weights"};
  }

  LogicalResult search(ModuleOp module, func::FuncOp function) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to know what matters: name a text with --calibrate");
    FailureOr<Budget> found = budgetOf(module, function);
    if (failed(found))
      return failure();
    budget = *found;
    const SmallVector<SiteKind> kinds = kvBytes != 1 ? SmallVector<SiteKind>{SiteKind::KVHeads}
                                                     : SmallVector<SiteKind>{SiteKind::QueryHeads, SiteKind::FeedForward};
    const PruneSettings settings{kPass, "wanda", recover, tokens, window, unit};
    {
      const ChannelGroups groups(function);
      FailureOr<std::vector<ShapeSite>> all = shapeSites(function, groups, kinds, unit, kvBytes != 1);
      if (failed(all))
        return failure();
      sites = std::move(*all);
      if (failed(measureLosses(function, settings, *source, sites)))
        return failure();
    }
    const Shape whole = wholeShape();
    Shape least = whole;
    fill(least, std::vector<double>(sites.size(), 1), 0);
    if (bytesLeft(least) > budget.allowed)
      return function.emitOpError("has ")
             << int64_t(budget.all) << " " << budget.what << ", of which channels and heads can give "
             << int64_t(budget.all - bytesLeft(least)) << "; the budget is " << int64_t(budget.allowed)
             << " bytes: take layers or the vocabulary first, or fewer bits";
    FailureOr<Shape> shape = budget.all <= budget.allowed ? FailureOr<Shape>(whole) : chooseShape(function, settings, *source);
    if (failed(shape))
      return failure();
    for (SiteKind kind : kinds) {
      SmallVector<int64_t> stay;
      for (auto [site, count] : llvm::zip_equal(sites, *shape))
        if (site.kind == kind)
          stay.push_back(count);
      if (failed(pruneSites(module, kind, settings,
                            [&](const SiteSize &site) -> FailureOr<int64_t> { return stay[size_t(site.index)]; })))
        return failure();
    }
    report(function, kPass,
           Twine(int64_t(bytesLeft(*shape))) + " of " + Twine(int64_t(budget.all)) + " " + budget.what + " stay");
    return success();
  }

  Shape wholeShape() const {
    Shape shape;
    for (const ShapeSite &site : sites)
      shape.push_back(site.size);
    return shape;
  }

  double bytesLeft(const Shape &shape) const {
    double left = budget.all;
    for (auto [site, stay] : llvm::zip_equal(sites, shape))
      left -= site.cost * double((site.size - stay) / site.unit);
    return left;
  }

  static bool canGive(const ShapeSite &site, int64_t stay) { return site.group && stay - site.unit >= site.least(); }

  /// Takes the unit that says least for its bytes, again and again, until no more than `allowed` bytes are left or no site
  /// can give any.
  void fill(Shape &shape, ArrayRef<double> scales, double allowed) const {
    for (double left = bytesLeft(shape); left > allowed;) {
      size_t best = sites.size();
      double least = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < sites.size(); ++i) {
        const ShapeSite &site = sites[i];
        if (!canGive(site, shape[i]))
          continue;
        const double price = scales[i] * site.losses[size_t((site.size - shape[i]) / site.unit)] / site.cost;
        if (best == sites.size() || price < least)
          best = i, least = price;
      }
      if (best == sites.size())
        return;
      shape[best] -= sites[best].unit, left -= sites[best].cost;
    }
  }

  /// The same share of every site, the least one that is enough.
  Shape uniformShape() const {
    const auto at = [&](double share) {
      Shape shape;
      for (const ShapeSite &site : sites) {
        const int64_t units = int64_t(std::floor(share * double(site.size) / double(site.unit) + 1e-9));
        shape.push_back(site.group ? std::max(site.least(), site.size - units * site.unit) : site.size);
      }
      return shape;
    };
    double low = 0, high = 1;
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + high) / 2;
      (bytesLeft(at(middle)) > budget.allowed ? low : high) = middle;
    }
    return at(high);
  }

  /// Runs of sites of one kind.
  std::vector<Band> bandsOf() const {
    std::vector<Band> all;
    for (size_t begin = 0, end; begin < sites.size(); begin = end) {
      for (end = begin; end < sites.size() && sites[end].kind == sites[begin].kind;)
        ++end;
      const size_t count = std::min<size_t>(std::max<int64_t>(1, bands), end - begin);
      for (size_t b = 0; b < count; ++b)
        all.push_back({begin + (end - begin) * b / count, begin + (end - begin) * (b + 1) / count});
    }
    return all;
  }

  /// What the losses of each site are worth in guesses: bands are tried out one by one, cut as in `shape`, with all else
  /// as in `rest`.
  FailureOr<std::vector<double>> scalesOf(ShapeTrial &trial, const Shape &shape) {
    std::vector<double> scales(sites.size(), 1);
    for (const Band &band : bandsOf()) {
      Shape cut = wholeShape();
      double losses = 0;
      for (size_t i = band.begin; i < band.end; ++i) {
        cut[i] = shape[i];
        if (cut[i] == sites[i].size && canGive(sites[i], cut[i]))
          cut[i] -= sites[i].unit; // a band that a shape leaves alone must show what it is worth, too
        for (int64_t unit = 0; unit < (sites[i].size - cut[i]) / sites[i].unit; ++unit)
          losses += sites[i].losses[size_t(unit)];
      }
      if (losses <= 0)
        continue;
      FailureOr<double> diverged = trial.divergence(sites, cut);
      if (failed(diverged))
        return failure();
      tell(sites[band.begin].at, describe(band), *diverged);
      for (size_t i = band.begin; i < band.end; ++i)
        scales[i] = std::max(*diverged, 1e-9) / losses;
    }
    return scales;
  }

  /// The best of several shapes by trial: the same share of all, the one that the scores call best, and those between.
  FailureOr<Shape> chooseShape(func::FuncOp function, const PruneSettings &settings, ActivationSource &source) {
    if (trialTokens == 0) {
      Shape shape = wholeShape();
      fill(shape, std::vector<double>(sites.size(), 1), budget.allowed);
      return shape;
    }
    const int64_t read = std::min<int64_t>(trialTokens, source.available());
    ShapeTrial trial(function, settings, std::max<int64_t>(1, read * 2 / 3), std::max<int64_t>(1, read - read * 2 / 3), source);
    const Shape uniform = uniformShape();
    if (failed(trial.begin()))
      return failure();
    FailureOr<std::vector<double>> scales = scalesOf(trial, uniform);
    if (failed(scales))
      return failure();
    Shape best;
    double least = std::numeric_limits<double>::infinity();
    for (double part : {0.0, 0.35, 0.7, 1.0}) {
      Shape shape = between(uniform, *scales, part);
      FailureOr<double> diverged = trial.divergence(sites, shape);
      if (failed(diverged))
        return failure();
      tell(function, Twine(int(100 * part)) + " % by score, the rest the same share of all", *diverged);
      if (std::isfinite(*diverged) && *diverged < least)
        least = *diverged, best = std::move(shape);
    }
    if (best.empty())
      return function.emitOpError("found no shape whose guesses are finite");
    return best;
  }

  /// Sites give up `1 - part` of what they would in `uniform`, and the rest by price.
  Shape between(const Shape &uniform, ArrayRef<double> scales, double part) const {
    Shape shape;
    for (auto [site, stay] : llvm::zip_equal(sites, uniform)) {
      const int64_t units = int64_t(std::llround((1 - part) * double(site.size - stay) / double(site.unit)));
      shape.push_back(site.size - units * site.unit);
    }
    fill(shape, scales, budget.allowed);
    return shape;
  }

  std::string describe(const Band &band) const {
    const auto layer = [&](size_t i) {
      auto found = sites[i].at->getParentOfType<LayerOp>();
      return found ? std::to_string(found.getIndex()) : std::string("–");
    };
    const StringRef what = sites[band.begin].kind == SiteKind::FeedForward  ? "channels"
                           : sites[band.begin].kind == SiteKind::QueryHeads ? "query heads"
                                                                            : "key-value heads";
    return (what + " of layers " + layer(band.begin) + " to " + layer(band.end - 1) + " alone").str();
  }

  static void tell(Operation *at, const Twine &what, double divergence) {
    report(at, kPass, "tried " + what + ": divergence " + llvm::formatv("{0:f4}", divergence).str());
    if (PruneReport *page = PruneReport::of(at->getContext()))
      page->tried.push_back({what.str(), divergence});
  }

  Budget budget{};
  std::vector<ShapeSite> sites;
};

} // namespace
