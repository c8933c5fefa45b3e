#include "transforms/Prune/ShapeTrial.h"

#include "lib/Weights/WeightStore.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Speculation/HeadSite.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

namespace {

/// Sees the logits behind the first `skip` tokens of the text.
class Logits : public ActivationVisitor {
public:
  Logits(Operation *head, int64_t skip) : head(head), skip(skip) {}
  bool wants(Operation *op) override { return op == head; }
  LogicalResult visit(Operation *, int64_t, const ActivationRows &, const ActivationRows &logits) override {
    for (int64_t t = 0; t < logits.rows; ++t)
      if (seen++ >= skip)
        take(logits.row(t));
    return success();
  }

protected:
  virtual void take(ArrayRef<float> logits) = 0;
  static double logSum(ArrayRef<float> logits) {
    const float most = *llvm::max_element(logits);
    double sum = 0;
    for (float x : logits)
      sum += std::exp(double(x) - most);
    return most + std::log(sum);
  }

private:
  Operation *head;
  int64_t skip, seen = 0;
};

class Guesses final : public Logits {
public:
  using Logits::Logits;
  std::vector<ShapeTrial::Guess> all;

private:
  void take(ArrayRef<float> logits) override {
    constexpr size_t count = ShapeTrial::kLikeliest;
    order.resize(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t some = std::min(count, order.size());
    std::partial_sort(order.begin(), order.begin() + ptrdiff_t(some), order.end(),
                      [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
    const double sum = logSum(logits);
    ShapeTrial::Guess &guess = all.emplace_back();
    guess.tokens.fill(-1), guess.logs.fill(0);
    for (size_t i = 0; i < some; ++i)
      guess.tokens[i] = order[i], guess.logs[i] = float(double(logits[size_t(order[i])]) - sum);
  }
  std::vector<int32_t> order;
};

class Divergence final : public Logits {
public:
  Divergence(Operation *head, int64_t skip, ArrayRef<ShapeTrial::Guess> wanted) : Logits(head, skip), wanted(wanted) {}
  double mean() const { return next ? sum / double(next) : 0; }

private:
  void take(ArrayRef<float> logits) override {
    const ShapeTrial::Guess &guess = wanted[next++];
    const double all = logSum(logits);
    for (auto [token, log] : llvm::zip(guess.tokens, guess.logs))
      if (token >= 0)
        sum += std::exp(double(log)) * (double(log) - (double(logits[size_t(token)]) - all));
  }
  ArrayRef<ShapeTrial::Guess> wanted;
  size_t next = 0;
  double sum = 0;
};

} // namespace

/// What the function gives back for every position, and the copy that gives it.
static std::pair<func::FuncOp, Operation *> everyPosition(func::FuncOp function) {
  func::FuncOp every = cloneForEveryPosition(function);
  return {every, every.getBody().front().getTerminator()->getOperand(0).getDefiningOp()};
}

ShapeTrial::ShapeTrial(func::FuncOp function, PruneSettings settings, int64_t fit, int64_t judge, ActivationSource &source)
    : function(function), settings(std::move(settings)), fitted{fit, this->settings.window},
      read{fit + judge, this->settings.window}, source(source) {
  this->settings.tokens = fit;
  this->settings.quiet = true;
}

LogicalResult ShapeTrial::begin() {
  auto [every, head] = everyPosition(function);
  Guesses guesses(head, fitted.tokens);
  const LogicalResult done = source.visit(every, read, guesses);
  every.erase();
  wanted = std::move(guesses.all);
  return done;
}

FailureOr<double> ShapeTrial::divergence(ArrayRef<ShapeSite> sites, const Shape &shape) {
  auto module = function->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> copy(module.clone());
  WeightStore *store = weightStoreOf(*copy);
  if (!store)
    return failure();
  const WeightTrial trial(*store);
  auto copied = copy->lookupSymbol<func::FuncOp>(function.getSymName());
  FailureOr<SitePruner> pruner = SitePruner::create(*copy, settings);
  if (failed(pruner))
    return failure();
  const ChannelGroups groups(copied);
  std::vector<PruneSite> cuts;
  for (SiteKind kind : {SiteKind::FeedForward, SiteKind::QueryHeads, SiteKind::KVHeads}) {
    SmallVector<int64_t> stay;
    for (auto [site, count] : llvm::zip_equal(sites, shape))
      if (site.kind == kind)
        stay.push_back(count);
    if (stay.empty())
      continue;
    auto found = sitesOf(kind, copied, groups, settings.unit,
                         [&](const SiteSize &site) -> FailureOr<int64_t> { return stay[size_t(site.index)]; });
    if (failed(found))
      return failure();
    std::move(found->begin(), found->end(), std::back_inserter(cuts));
  }
  if (failed(pruner->run(copied, cuts)))
    return failure();
  auto [every, head] = everyPosition(copied);
  Divergence result(head, fitted.tokens, wanted);
  if (failed(source.visit(every, read, result)))
    return failure();
  return result.mean();
}
