#include "transforms/Passes.h"
#include "transforms/Prune/BlockInfluence.h"
#include "transforms/Prune/PruneReport.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Remarks.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <map>
#include <random>

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNELAYERSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-layers";
/// Of the diagonal of second moments, for the fit that makes up for removed layers.
static constexpr double kDamping = 0.01;

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

static Eigen::Map<const Rows> viewOf(const ActivationRows &rows) {
  return {rows.numbers.data(), rows.rows, rows.width};
}

namespace {

/// Second moments of what a layer that stays can be corrected by, and their moments with what later layers add to its
/// output.
class SpanMoments final : public ActivationVisitor {
public:
  /// `spans`: the last product of a layer that stays, or the norm behind it, the layer, and the last of the layers behind
  /// it that go.
  struct Span {
    LinearOp product; ///< its input is fitted …
    Operation *norm;  ///< … or, where the product's result is normed before it is added, what is added
    Operation *layer, *last;
    Eigen::MatrixXf gram, cross; ///< Σ xxᵀ, Σ (removed − kept) xᵀ
    std::map<int64_t, Rows> inputs, outputs;
  };
  explicit SpanMoments(std::vector<Span> &spans) : spans(spans) {}

  bool wants(Operation *op) override {
    return llvm::any_of(spans, [&](Span &span) {
      return op == span.product || op == span.norm || op == span.layer || op == span.last;
    });
  }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input, const ActivationRows &output) override {
    for (Span &span : spans) {
      if (op == span.product)
        span.inputs[window] = viewOf(input);
      if (op == span.norm)
        span.inputs[window] = viewOf(output);
      if (op == span.layer)
        span.outputs[window] = viewOf(output);
      if (op != span.last)
        continue;
      const Rows &x = span.inputs[window];
      const Rows change = viewOf(output) - span.outputs[window];
      if (span.gram.size() == 0) {
        span.gram.setZero(x.cols(), x.cols());
        span.cross.setZero(change.cols(), x.cols());
      }
      span.gram.noalias() += x.transpose() * x;
      span.cross.noalias() += change.transpose() * x;
      span.inputs.erase(window), span.outputs.erase(window);
    }
    return success();
  }

private:
  std::vector<Span> &spans;
};

struct PruneLayersPass final : llm::impl::PruneLayersPassBase<PruneLayersPass> {
  using PruneLayersPassBase::PruneLayersPassBase;

  void runOnOperation() override {
    int64_t left = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto layers = llvm::to_vector(function.getOps<LayerOp>());
      if (layers.empty())
        continue;
      FailureOr<SmallVector<LayerOp>> removed = remove.empty() ? choose(function, layers) : named(function, layers);
      if (failed(removed) || (recover && !removed->empty() && failed(refit(function, *removed))))
        return signalPassFailure();
      for (LayerOp layer : *removed) {
        report(layer, kPass, "layer removed");
        const auto known = influences.find(layer);
        if (PruneReport *page = PruneReport::of(&getContext()))
          page->records.push_back({kPass.str(), "layer", int64_t(layer.getIndex()), 1, 1,
                                   known == influences.end() ? -1 : known->second, {}});
        layer.replaceAllUsesWith(layer.getInputs());
        layer.erase();
      }
      left = std::max<int64_t>(left, int64_t(layers.size() - removed->size()));
    }
    if (left)
      describeModel(getOperation(), "layers", left);
  }

private:
  llvm::DenseMap<Operation *, double> influences;

  ActivationSource *source(func::FuncOp function, StringRef what) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      function.emitOpError("needs activations for ") << what << ": name a text with --calibrate";
    return source;
  }

  /// The layers at the places of `remove`, in program order.
  FailureOr<SmallVector<LayerOp>> named(func::FuncOp function, ArrayRef<LayerOp> layers) {
    llvm::SmallDenseSet<int64_t> places;
    for (int64_t place : remove)
      if (place < 0 || place >= int64_t(layers.size()) || !places.insert(place).second)
        return function.emitOpError() << kPass << " expects different places from 0 to " << layers.size() - 1
                                      << " in remove, but got " << place,
               failure();
    if (places.size() == layers.size())
      return function.emitOpError() << kPass << " expects a layer to stay, but remove names all " << layers.size(), failure();
    SmallVector<LayerOp> removed;
    for (auto [place, layer] : llvm::enumerate(layers))
      if (places.contains(int64_t(place)))
        removed.push_back(layer);
    return removed;
  }

  /// In program order.
  FailureOr<SmallVector<LayerOp>> choose(func::FuncOp function, ArrayRef<LayerOp> layers) {
    if (count < 0 || count >= int64_t(layers.size()))
      return function.emitOpError("expects to lose 0 to ") << layers.size() - 1 << " layers, but got " << int64_t(count),
             failure();
    std::vector<double> keep; // what is worth keeping has the largest score
    if (score == "influence") {
      ActivationSource *activations = source(function, "the score influence");
      BlockInfluence influence;
      if (!activations || failed(activations->visit(function, {tokens, window}, influence)))
        return failure();
      for (LayerOp layer : layers) {
        keep.push_back(influence.of(layer));
        influences[layer] = keep.back();
      }
    } else if (score == "random") {
      std::mt19937_64 random{1};
      for (size_t i = 0; i < layers.size(); ++i)
        keep.push_back(double(random()));
    } else {
      return function.emitOpError("expects a score influence or random, but got '") << score << "'", failure();
    }
    SmallVector<LayerOp> removed(layers);
    const SmallVector<int64_t> kept = largest(keep, int64_t(layers.size()) - count);
    for (int64_t index : llvm::reverse(kept))
      removed.erase(removed.begin() + index);
    return removed;
  }

  /// The product whose result, with the residual, is the result of a layer.
  static LinearOp lastProduct(LayerOp layer) {
    auto linear = layer.getYield().getValues().front().getDefiningOp<LinearOp>();
    const bool plain = linear && linear.getResidual() && !linear.getGamma() && !linear.getRowScale() &&
                       cast<ShapedType>(linear.getWeight().getType()).getRank() == 2;
    return plain ? linear : LinearOp();
  }

  /// The norm whose result is the last that a layer adds to the residual.
  static Operation *lastNorm(LayerOp layer) {
    auto add = layer.getYield().getValues().front().getDefiningOp<AddOp>();
    for (Value part : add ? ValueRange(add->getOperands()) : ValueRange())
      if (Operation *norm = part.getDefiningOp(); norm && isa<RmsNormOp, LayerNormOp>(norm))
        return norm;
    return nullptr;
  }

  LogicalResult refit(func::FuncOp function, ArrayRef<LayerOp> removed) {
    ActivationSource *activations = source(function, "recovery");
    WeightStore *store = weightStoreOf(getOperation());
    WeightSpill *spill = store ? store->spill(getOperation()) : nullptr;
    if (!activations || !spill)
      return failure();
    std::vector<SpanMoments::Span> spans;
    LayerOp before;
    bool inSpan = false;
    IRRewriter rewriter(&getContext());
    for (auto layer : function.getOps<LayerOp>()) {
      if (!llvm::is_contained(removed, layer)) {
        before = layer, inSpan = false;
        continue;
      }
      LinearOp product = before ? lastProduct(before) : LinearOp();
      Operation *norm = before && !product ? lastNorm(before) : nullptr;
      if (!product && !norm) {
        (void)refuse(rewriter, layer, kPass, "no product before the removed layers can make up for them");
        continue;
      }
      if (!inSpan)
        spans.push_back({product, norm, before, layer, {}, {}, {}, {}});
      spans.back().last = layer;
      inSpan = true;
    }
    SpanMoments moments(spans);
    if (spans.empty())
      return success();
    if (failed(activations->visit(function, {tokens, window}, moments)))
      return failure();
    for (SpanMoments::Span &span : spans)
      if (failed(fold(span, *store, *spill)))
        return failure();
    return success();
  }

  /// W += C (H + λI)⁻¹: the least squares of what the removed layers added, from what the product reads. Behind a norm,
  /// which W cannot be seen through, that is a product of its own, added last.
  LogicalResult fold(SpanMoments::Span &span, WeightStore &store, WeightSpill &spill) {
    Operation *at = span.product ? span.product.getOperation() : span.norm;
    Eigen::MatrixXd gram = span.gram.cast<double>();
    gram.diagonal().array() += kDamping * gram.diagonal().mean() + 1e-30;
    const Eigen::LLT<Eigen::MatrixXd> factor(gram);
    const Eigen::MatrixXf change = factor.solve(span.cross.cast<double>().transpose()).transpose().cast<float>();
    if (factor.info() != Eigen::Success || !change.allFinite())
      return at->emitOpError("expects inputs that can be fitted, but their second moments cannot be inverted");
    return span.product ? addTo(span.product, change, store, spill) : addBehind(span, change, spill);
  }

  LogicalResult addTo(LinearOp product, const Eigen::MatrixXf &change, WeightStore &store, WeightSpill &spill) {
    FailureOr<Matrix> weight = readMatrix(product.getWeight(), store, product);
    if (failed(weight))
      return failure();
    Eigen::Map<Rows>(weight->numbers.data(), weight->N, weight->K) += change;
    OpBuilder builder(product);
    FailureOr<Value> value =
        writeLike(builder, product.getLoc(), spill, weightName(product.getWeight()) + ".refitted",
                  cast<RankedTensorType>(product.getWeight().getType()), *weight);
    if (failed(value))
      return failure();
    replaceWeight(product.getWeightMutable(), *value);
    report(product, kPass, "makes up for the layers behind it");
    return success();
  }

  /// y ==> linear(n, C) + y, n the normed part of y
  LogicalResult addBehind(const SpanMoments::Span &span, const Eigen::MatrixXf &change, WeightSpill &spill) {
    auto layer = cast<LayerOp>(span.layer);
    Matrix weight{change.rows(), change.cols(), std::vector<float>(size_t(change.size()))};
    Eigen::Map<Rows>(weight.numbers.data(), weight.N, weight.K) = change;
    Operation *yield = layer.getYield();
    OpBuilder builder(yield);
    const Location loc = span.norm->getLoc();
    FailureOr<Value> value =
        writeLike(builder, loc, spill, ("layer." + Twine(layer.getIndex()) + ".recovery").str(),
                  RankedTensorType::get({weight.N, weight.K}, builder.getF16Type()), weight);
    if (failed(value))
      return failure();
    Value result = yield->getOperand(0);
    yield->setOperand(0, LinearOp::create(builder, loc, result.getType(), span.norm->getResult(0), *value,
                                          /*bias=*/Value(), /*residual=*/result));
    report(layer, kPass, "makes up for the layers behind it by a product more");
    return success();
  }
};

} // namespace
