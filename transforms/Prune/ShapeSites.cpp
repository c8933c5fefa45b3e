#include "transforms/Prune/ShapeSites.h"

#include "lib/Weights/WeightTypes.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;

namespace {

/// By layer and window, for each token one over the energy of what the layer leaves in the residual.
class TokenWeights final : public ActivationVisitor {
public:
  bool wants(Operation *op) override { return isa<LayerOp>(op); }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &, const ActivationRows &output) override {
    std::vector<double> &own = weights[{op, window}];
    for (int64_t t = 0; t < output.rows; ++t) {
      double energy = 1e-30;
      for (float x : output.row(t))
        energy += double(x) * x;
      own.push_back(1 / energy);
    }
    return success();
  }

  std::map<std::pair<Operation *, int64_t>, std::vector<double>> weights;
};

/// Squares of what meets the weights of some products, token by token times these.
class WeightedSquares final : public ActivationVisitor {
public:
  WeightedSquares(const TokenWeights &tokens, llvm::DenseSet<Operation *> products)
      : tokens(tokens), products(std::move(products)) {}
  bool wants(Operation *op) override { return products.contains(op); }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input, const ActivationRows &) override {
    const auto found = tokens.weights.find({op->getParentOfType<LayerOp>(), window});
    if (found == tokens.weights.end() || found->second.empty())
      return success();
    const std::vector<double> &weights = found->second;
    auto &statistics = sums[op];
    if (!statistics)
      statistics = std::make_shared<InputStatistics>();
    statistics->width = input.width, statistics->rows += input.rows;
    statistics->squares.resize(size_t(input.width), 0);
    // Of experts a token has several rows, of which the order is not known: they count alike.
    const bool byToken = input.rows == int64_t(weights.size());
    const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / double(weights.size());
    for (int64_t t = 0; t < input.rows; ++t) {
      const double weight = byToken ? weights[size_t(t)] : mean;
      for (auto [sum, x] : llvm::zip(statistics->squares, input.row(t)))
        sum += weight * double(x) * x;
    }
    return success();
  }

  LayerStatistics statistics() const {
    LayerStatistics all;
    for (const auto &[op, one] : sums)
      all[op] = one;
    return all;
  }

private:
  const TokenWeights &tokens;
  llvm::DenseSet<Operation *> products;
  llvm::MapVector<Operation *, std::shared_ptr<InputStatistics>> sums;
};

} // namespace

static double kvBytesOf(KVType type) {
  const double key = storedBits(type.getKeyType()) / 8 * double(type.getKeyWidth());
  return type.getValueType() ? key + storedBits(type.getValueType()) / 8 * double(type.getValueWidth()) : key;
}

double mlir::llm::kvBytesOf(func::FuncOp function) {
  double all = 0;
  function.walk([&](KVAppendOp append) {
    const auto type = cast<KVType>(append.getCache().getType());
    all += ::kvBytesOf(type) * double(type.getHeads());
  });
  return all;
}

FailureOr<std::vector<ShapeSite>> mlir::llm::shapeSites(func::FuncOp function, const ChannelGroups &groups,
                                                        ArrayRef<SiteKind> kinds, int64_t unit,
                                                        bool kvBytes) {
  std::vector<ShapeSite> all;
  for (SiteKind kind : kinds) {
    // The rule is asked about every site; that it takes a unit from each makes the sites known.
    std::vector<ShapeSite> own;
    FailureOr<std::vector<PruneSite>> found = sitesOf(kind, function, groups, unit, [&](const SiteSize &site) -> FailureOr<int64_t> {
      own.push_back({kind, site.index, site.size, site.unit, site.parts, site.at, nullptr, 0, {}});
      return site.size > site.unit ? site.size - site.unit : site.size;
    });
    if (failed(found))
      return failure();
    size_t next = 0;
    for (const PruneSite &site : *found) {
      while (own[next].size <= own[next].unit)
        ++next;
      ShapeSite &mine = own[next++];
      mine.group = site.groups.front();
      if (kvBytes)
        mine.cost = ::kvBytesOf(cast<KVType>(cast<AttentionOp>(mine.at).getCache().getType())) * double(mine.unit);
      else
        for (const ChannelUse &use : mine.group->uses) {
          const auto type = cast<RankedTensorType>(use.operand->get().getType());
          mine.cost += storedBits(type.getElementType()) / 8 * double(type.getNumElements()) * double(mine.unit) /
                       double(mine.size);
        }
    }
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

/// Sums of each `count` that follow one another; what is left over is not a whole unit.
static std::vector<double> sumsOf(ArrayRef<double> losses, size_t count) {
  std::vector<double> sums;
  for (size_t i = 0; i + count <= losses.size(); i += count)
    sums.push_back(std::accumulate(losses.begin() + i, losses.begin() + i + count, 0.0));
  return sums;
}

/// What goes together is worth what its parts are: units of channels, key-value heads with their query heads, and query
/// heads as many of each key-value head, the n-th worst of all of them together.
static std::vector<double> lossesOf(const ShapeSite &site, std::vector<double> scores) {
  std::vector<double> losses;
  if (site.kind == SiteKind::QueryHeads) {
    const size_t groups = size_t(site.parts), shared = scores.size() / groups;
    losses.assign(shared, 0);
    for (size_t g = 0; g < groups; ++g) {
      std::sort(scores.begin() + ptrdiff_t(g * shared), scores.begin() + ptrdiff_t((g + 1) * shared));
      for (size_t i = 0; i < shared; ++i)
        losses[i] += scores[g * shared + i];
    }
    return sumsOf(losses, size_t(site.unit / site.parts));
  }
  if (site.kind == SiteKind::KVHeads) {
    const size_t shared = scores.size() / size_t(site.size);
    losses.assign(size_t(site.size), 0);
    for (auto [h, score] : llvm::enumerate(scores))
      losses[h / shared] += score;
    llvm::sort(losses);
    return sumsOf(losses, size_t(site.unit));
  }
  llvm::sort(scores);
  return sumsOf(scores, size_t(site.unit));
}

LogicalResult mlir::llm::measureLosses(func::FuncOp function, const PruneSettings &settings, ActivationSource &source,
                                       std::vector<ShapeSite> &sites) {
  FailureOr<SitePruner> pruner = SitePruner::create(function->getParentOfType<ModuleOp>(), settings);
  if (failed(pruner))
    return failure();
  llvm::DenseSet<Operation *> readers;
  for (const ShapeSite &site : sites)
    if (site.group)
      for (const ChannelUse &use : site.group->uses)
        if (use.isColumns())
          readers.insert(use.owner());
  const CalibrationOptions text{settings.tokens, settings.window};
  TokenWeights tokens;
  if (failed(source.visit(function, text, tokens)))
    return failure();
  WeightedSquares squares(tokens, std::move(readers));
  if (failed(source.visit(function, text, squares)))
    return failure();
  const LayerStatistics inputs = squares.statistics();
  for (ShapeSite &site : sites) {
    if (!site.group)
      continue;
    FailureOr<std::vector<double>> scores = pruner->scores(*site.group, inputs);
    if (failed(scores))
      return failure();
    site.losses = lossesOf(site, std::move(*scores));
  }
  return success();
}
