#include "transforms/Speculation/LayerChoice.h"

#include "lib/Weights/WeightTypes.h"
#include "transforms/Prune/BlockInfluence.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Speculation/HeadSite.h"
#include <numeric>
#include <set>

using namespace mlir;
using namespace mlir::llm;

/// No chain that pays is longer.
static constexpr int kLongestChain = 16;

namespace {

/// The arg-max of the logits at every position of the text.
class Answers final : public ActivationVisitor {
public:
  explicit Answers(Operation *head) : head(head) {}
  bool wants(Operation *op) override { return op == head; }
  LogicalResult visit(Operation *, int64_t, const ActivationRows &, const ActivationRows &logits) override {
    for (int64_t t = 0; t < logits.rows; ++t) {
      ArrayRef<float> row = logits.row(t);
      tokens.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    }
    return success();
  }
  std::vector<int64_t> tokens;

private:
  Operation *head;
};

/// What `forward` answers without some layers.
FailureOr<std::vector<int64_t>> answersWithout(func::FuncOp forward, ArrayRef<int64_t> places, ActivationSource &text,
                                               const CalibrationOptions &options) {
  func::FuncOp trial = cloneForEveryPosition(forward);
  removeLayers(trial, places);
  Answers answers(trial.getBody().front().getTerminator()->getOperand(0).getDefiningOp());
  const LogicalResult done = text.visit(trial, options, answers);
  trial.erase();
  if (failed(done))
    return failure();
  return std::move(answers.tokens);
}

/// Bytes that each layer reads, and behind the last place those that all else reads: a step takes as long as that.
std::vector<double> bytesByLayer(func::FuncOp forward, ArrayRef<LayerOp> layers) {
  std::vector<double> bytes(layers.size() + 1);
  forward.walk([&](WeightOp weight) {
    // Of an embedding one row is read.
    if (llvm::all_of(weight->getUsers(), llvm::IsaPred<EmbeddingOp>))
      return;
    auto layer = weight->getParentOfType<LayerOp>();
    auto type = cast<RankedTensorType>(weight.getType());
    bytes[size_t(llvm::find(layers, layer) - layers.begin())] +=
        storedBits(type.getElementType()) / 8 * double(type.getNumElements());
  });
  return bytes;
}

/// The `count` layers of the least influence.
SmallVector<int64_t> leastOf(ArrayRef<double> influence, int64_t count) {
  SmallVector<double> negated;
  for (double number : influence)
    negated.push_back(-number);
  return largest(negated, count);
}

/// The run of `count` layers that has the least influence together.
SmallVector<int64_t> leastRun(ArrayRef<double> influence, int64_t count) {
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t first = 0; first + count <= int64_t(influence.size()); ++first) {
    ArrayRef<double> run = influence.slice(size_t(first), size_t(count));
    if (double sum = std::accumulate(run.begin(), run.end(), 0.0); sum < least)
      least = sum, best = first;
  }
  SmallVector<int64_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), best);
  return places;
}

} // namespace

double mlir::llm::bestRate(double agreement, double cost) {
  double best = 0, sum = 1, power = 1;
  for (int k = 1; k <= kLongestChain; ++k) {
    sum += power *= agreement;
    best = std::max(best, sum / (1 + k * cost));
  }
  return best;
}

void mlir::llm::removeLayers(func::FuncOp forward, ArrayRef<int64_t> places) {
  auto layers = llvm::to_vector(forward.getOps<LayerOp>());
  for (int64_t place : places) {
    LayerOp layer = layers[size_t(place)];
    layer.replaceAllUsesWith(layer.getInputs());
    layer.erase();
  }
}

SmallVector<int64_t> mlir::llm::layersByRule(int64_t layers, int64_t count) {
  SmallVector<int64_t> order;
  // The first layers and the last say most, so what is near the middle goes first.
  for (int64_t from : {2 * layers / 3, 2 * layers / 3 - 1})
    for (int64_t i = from; i > 0; i -= 2)
      order.push_back(i);
  for (int64_t i = 2 * layers / 3 + 1; i < layers; ++i)
    order.push_back(i);
  order.truncate(size_t(std::min<int64_t>(count, int64_t(order.size()))));
  llvm::sort(order);
  return order;
}

FailureOr<LayerChoice> mlir::llm::layersByText(func::FuncOp forward, int64_t count, ActivationSource &text,
                                               const CalibrationOptions &options) {
  auto layers = llvm::to_vector(forward.getOps<LayerOp>());
  BlockInfluence influence;
  FailureOr<std::vector<int64_t>> wanted = answersWithout(forward, {}, text, options);
  if (failed(wanted) || failed(text.visit(forward, options, influence)))
    return failure();
  SmallVector<double> influences;
  for (LayerOp layer : layers)
    influences.push_back(influence.of(layer));
  const std::vector<double> bytes = bytesByLayer(forward, layers);
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);

  std::set<SmallVector<int64_t>> trials;
  const int64_t most = int64_t(layers.size()) - 1;
  for (int64_t part : {6, 4, 3, 2}) {
    const int64_t some = count < 0 ? std::max<int64_t>(1, int64_t(layers.size()) / part) : count;
    if (some > most)
      continue;
    trials.insert(leastOf(influences, some));
    trials.insert(leastRun(influences, some));
  }
  LayerChoice best;
  for (const SmallVector<int64_t> &places : trials) {
    FailureOr<std::vector<int64_t>> got = answersWithout(forward, places, text, options);
    if (failed(got))
      return failure();
    LayerChoice choice{places, 0, 1};
    for (auto [a, b] : llvm::zip_equal(*wanted, *got))
      choice.agreement += a == b ? 1.0 / double(wanted->size()) : 0;
    double left = all;
    for (int64_t place : places)
      left -= bytes[size_t(place)];
    choice.cost = left / all;
    if (best.skipped.empty() || bestRate(choice.agreement, choice.cost) > bestRate(best.agreement, best.cost))
      best = std::move(choice);
  }
  return best;
}
