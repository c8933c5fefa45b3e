// Mixtures of experts: the choice, and the products with what was chosen.
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Products.h"
#include "lib/Reference/Math/Rows.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// The `count` largest of `scores` among the candidates, ties to the lower index, best first.
static SmallVector<size_t> best(ArrayRef<double> scores, SmallVector<size_t> candidates, size_t count) {
  llvm::sort(candidates, [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  candidates.truncate(count);
  return candidates;
}

/// Experts of the best groups; a group counts by its two largest scores, or by the largest alone.
static SmallVector<size_t> inBestGroups(ArrayRef<double> scores, size_t groups, size_t topGroups, bool byBest) {
  const size_t each = scores.size() / groups;
  std::vector<double> ranks(groups);
  for (size_t g = 0; g < groups; ++g) {
    std::vector<double> own(scores.begin() + g * each, scores.begin() + (g + 1) * each);
    llvm::sort(own, std::greater<>());
    ranks[g] = own[0] + (each > 1 && !byBest ? own[1] : 0);
  }
  SmallVector<size_t> chosen;
  for (size_t g : best(ranks, llvm::to_vector(llvm::seq<size_t>(0, groups)), topGroups))
    llvm::append_range(chosen, llvm::seq<size_t>(g * each, (g + 1) * each));
  llvm::sort(chosen);
  return chosen;
}

template <typename F> static LogicalResult evaluateRoute(const OpContext<F> &context) {
  auto op = cast<RouteOp>(context.op);
  const Tensor &logits = context.get(op.getLogits());
  const size_t T = size_t(logits.rows()), X = size_t(logits.width()), k = size_t(op.getTop());
  const auto bias = context.optional(op.getBias());
  const double factor = op.getScale() ? op.getScale()->convertToDouble() : 1;
  std::vector<F> scores(T * X);
  if (op.getScore() == ScoreKind::Softmax)
    softmax<F>(context.workers(), logits.as<F>().data(), scores.data(), T, X);
  else
    activate<F>(context.workers(), Nonlinearity::Sigmoid, logits.as<F>().data(), nullptr, scores.data(), T * X);
  int32_t *ids = context.template make<int32_t>(op.getIds(), int64_t(T));
  F *weights = context.make(op.getWeights(), int64_t(T));
  for (size_t t = 0; t < T; ++t) {
    std::vector<double> ranks(scores.begin() + t * X, scores.begin() + (t + 1) * X);
    for (size_t x = 0; x < bias.size(); ++x)
      ranks[x] += double(bias[x]);
    SmallVector<size_t> candidates = op.getGroups()
                                         ? inBestGroups(ranks, size_t(*op.getGroups()), size_t(*op.getTopGroups()),
                                                        op.getByBest())
                                         : llvm::to_vector(llvm::seq<size_t>(0, X));
    double sum = 0;
    for (auto [j, x] : llvm::enumerate(best(ranks, candidates, k))) {
      ids[t * k + j] = int32_t(x);
      weights[t * k + j] = scores[t * X + x];
      sum += double(scores[t * X + x]);
    }
    for (size_t j = 0; j < k; ++j)
      weights[t * k + j] = F(double(weights[t * k + j]) * factor / (op.getNormalise() ? sum : 1));
  }
  return success();
}

template <typename F> static LogicalResult evaluateAdapterChoice(const OpContext<F> &context) {
  auto op = cast<AdapterChoiceOp>(context.op);
  const int64_t T = context.get(op.getPositions()).elements();
  const ArrayRef<F> gains = context.floats(op.getGains());
  const uint32_t adapter = context.interpreter.options.adapter;
  if (adapter > gains.size())
    return op.emitOpError("expects one of ") << gains.size() << " adapters, but got " << adapter;
  int32_t *ids = context.template make<int32_t>(op.getIds(), T);
  F *gain = context.make(op.getGain(), T);
  std::fill_n(ids, T, adapter ? int32_t(adapter) - 1 : 0);
  std::fill_n(gain, T, adapter ? gains[adapter - 1] : F(0));
  return success();
}

template <typename F> static LogicalResult evaluateExpertLinear(const OpContext<F> &context) {
  auto op = cast<ExpertLinearOp>(context.op);
  const Tensor &x = context.get(op.getInput()), &w = context.get(op.getWeight());
  const ArrayRef<int32_t> ids = context.ints(op.getIds());
  const size_t T = size_t(context.get(op.getIds()).rows()), k = size_t(context.get(op.getIds()).width());
  const size_t X = size_t(w.rows()), N = size_t(w.shape()[1]), K = size_t(w.shape()[2]);
  const bool apart = size_t(x.elements()) == T * k * K; // x[t, j] rather than x[t] for all j
  const auto bias = context.optional(op.getBias()), combine = context.optional(op.getCombine());
  const auto residual = context.optional(op.getResidual());
  for (int32_t id : ids)
    if (id < 0 || size_t(id) >= X)
      return op.emitOpError("expects experts from 0 to ") << X - 1 << ", but got " << id;

  std::vector<F> products(T * k * N);
  context.workers().run(T * k, [&](size_t i) {
    const size_t expert = size_t(ids[i]);
    productKernels<F>().timesTransposed(x.as<F>().data() + (apart ? i : i / k) * K, ptrdiff_t(K),
                                        w.as<F>().data() + expert * N * K, ptrdiff_t(K), products.data() + i * N,
                                        ptrdiff_t(N), 1, ptrdiff_t(N), ptrdiff_t(K));
    for (size_t n = 0; n < bias.size() / X; ++n)
      products[i * N + n] += bias[expert * N + n];
  });
  F *y = context.make(op.getResult(), int64_t(T));
  if (combine.empty()) {
    llvm::copy(products, y);
    return success();
  }
  for (size_t t = 0; t < T; ++t)
    for (size_t n = 0; n < N; ++n) {
      F sum = residual.empty() ? F(0) : residual[t * N + n];
      for (size_t j = 0; j < k; ++j)
        sum += combine[t * k + j] * products[(t * k + j) * N + n];
      y[t * N + n] = sum;
    }
  return success();
}

template <typename F> void reference::addExpertOps(OpTable<F> &table) {
  table[TypeID::get<RouteOp>()] = {evaluateRoute<F>};
  table[TypeID::get<AdapterChoiceOp>()] = {evaluateAdapterChoice<F>};
  table[TypeID::get<ExpertLinearOp>()] = {evaluateExpertLinear<F>};
}
template void reference::addExpertOps<float>(OpTable<float> &);
template void reference::addExpertOps<double>(OpTable<double> &);
