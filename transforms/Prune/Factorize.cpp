#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/Sites.h"
#include "transforms/Remarks.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <cmath>

namespace mlir::llm {
#define GEN_PASS_DEF_FACTORIZEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-factorize";
/// Ranks are whole blocks of the usual formats.
static constexpr int64_t kRankUnit = 32;
/// Of the mean diagonal of the second moments, so that directions that the text never took count a little.
static constexpr double kDamping = 0.01;

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace {

/// W ≈ up · down, of rank r.
struct Factors {
  Matrix up, down; ///< [N, r] and [r, K]
  double lost = 0; ///< share of Σ|Wx|² that is not in them
};

/// The nearest product of rank r by what it does to inputs of second moments H = LLᵀ: the r largest singular vectors of
/// W·L (SVD-LLM, arXiv 2403.07378), from the eigenvectors of the smaller of its two squares. Without moments, of W.
std::optional<Factors> factorize(const Matrix &weight, ArrayRef<float> moments, int64_t rank) {
  const int64_t N = weight.N, K = weight.K;
  const Eigen::MatrixXd W = Eigen::Map<const Rows>(weight.numbers.data(), N, K).cast<double>();
  Eigen::MatrixXd H = Eigen::MatrixXd::Identity(K, K);
  if (!moments.empty()) {
    H = Eigen::Map<const Rows>(moments.data(), K, K).cast<double>();
    H.diagonal().array() += kDamping * H.diagonal().mean() + 1e-30;
  }
  Eigen::MatrixXd up, down;
  Eigen::VectorXd values;
  if (N <= K) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(W * H * W.transpose());
    if (solver.info() != Eigen::Success)
      return std::nullopt;
    values = solver.eigenvalues();
    up = solver.eigenvectors().rightCols(rank);
    down = up.transpose() * W;
  } else {
    const Eigen::LLT<Eigen::MatrixXd> factor(H);
    if (factor.info() != Eigen::Success)
      return std::nullopt;
    const Eigen::MatrixXd L = factor.matrixL(), M = W * L;
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(M.transpose() * M);
    if (solver.info() != Eigen::Success)
      return std::nullopt;
    values = solver.eigenvalues();
    const Eigen::MatrixXd V = solver.eigenvectors().rightCols(rank);
    up = M * V;
    down = factor.matrixL().transpose().solve(V).transpose(); // VᵀL⁻¹
  }
  // Each direction is shared out evenly, so that neither factor has columns that vanish beside others.
  for (int64_t i = 0; i < rank; ++i) {
    const double a = up.col(i).norm(), b = down.row(i).norm(), share = a > 0 && b > 0 ? std::sqrt(b / a) : 1;
    up.col(i) *= share, down.row(i) /= share;
  }
  if (!up.allFinite() || !down.allFinite())
    return std::nullopt;
  Factors result{{N, rank, std::vector<float>(size_t(N * rank))}, {rank, K, std::vector<float>(size_t(rank * K))}};
  Eigen::Map<Rows>(result.up.numbers.data(), N, rank) = up.cast<float>();
  Eigen::Map<Rows>(result.down.numbers.data(), rank, K) = down.cast<float>();
  const double all = values.sum();
  result.lost = all > 0 ? std::max(0.0, 1 - values.tail(rank).sum() / all) : 0;
  return result;
}

struct FactorizePass final : llm::impl::FactorizePassBase<FactorizePass> {
  using FactorizePassBase::FactorizePassBase;

  void runOnOperation() override {
    if (failed(checkShare(getOperation(), kPass, ratio)) || failed(checkNotFused(getOperation(), kPass)))
      return signalPassFailure();
    if (failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return run(function); })))
      signalPassFailure();
  }

private:
  /// Products of layers; of tables only where they are asked for, with what else reads them.
  bool wants(LinearOp linear) const {
    return cast<ShapedType>(linear.getWeight().getType()).getRank() == 2 && !linear.getGamma() &&
           (head || layerOf(linear)) && rankOf(linear) > 0;
  }

  /// The largest rank whose factors have `1 - ratio` of the numbers; 0 where that would save nothing.
  int64_t rankOf(LinearOp linear) const {
    const auto type = cast<ShapedType>(linear.getWeight().getType());
    const double N = double(type.getDimSize(0)), K = double(type.getDimSize(1));
    const int64_t rank = int64_t((1 - ratio) * N * K / (N + K)) / kRankUnit * kRankUnit;
    return double(rank) * (N + K) < N * K ? rank : 0;
  }

  LogicalResult run(func::FuncOp function) {
    if (ratio == 0)
      return success();
    bool any = false;
    function.walk([&](LinearOp linear) { any |= wants(linear); });
    if (!any) {
      function.emitWarning() << kPass << " factorises nothing: no product becomes smaller by a rank that is a multiple of "
                             << kRankUnit;
      return success();
    }
    if (!whiten) {
      SmallVector<LinearOp> products;
      function.walk([&](LinearOp linear) { products.push_back(linear); });
      for (LinearOp linear : products)
        if (wants(linear) && failed(split(linear, {})))
          return failure();
      return success();
    }
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to weigh directions by: name a text with --calibrate, or say "
                                  "whiten=false");
    StatisticsRequest request;
    request.wants = [&](Operation *op) { return isa<LinearOp>(op) && wants(cast<LinearOp>(op)); };
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                for (auto &[product, statistics] : inputs)
                                  if (failed(split(cast<LinearOp>(product), statistics->gram)))
                                    return failure();
                                return LayerChange::Rewritten;
                              });
  }

  LogicalResult split(LinearOp linear, ArrayRef<float> moments) {
    FailureOr<Matrix> weight = readMatrix(linear.getWeight(), *store, linear);
    if (failed(weight))
      return failure();
    const int64_t rank = rankOf(linear);
    std::optional<Factors> factors = factorize(*weight, moments, rank);
    if (!factors)
      return linear.emitOpError("expects a weight and inputs that can be factorised, but their products have no "
                                "eigenvectors");
    const Location loc = linear.getLoc();
    const auto type = cast<RankedTensorType>(linear.getWeight().getType());
    const std::string name = weightName(linear.getWeight());
    OpBuilder builder(linear);
    const auto like = [&](const Matrix &matrix) {
      return RankedTensorType::get({matrix.N, matrix.K}, type.getElementType(), type.getEncoding());
    };
    FailureOr<Value> down = writeLike(builder, loc, *spill, name + ".down", like(factors->down), factors->down);
    FailureOr<Value> up = writeLike(builder, loc, *spill, name + ".up", like(factors->up), factors->up);
    if (failed(down) || failed(up))
      return failure();
    const auto input = cast<RankedTensorType>(linear.getInput().getType());
    auto narrow = RankedTensorType::get({input.getDimSize(0), rank}, builder.getF32Type());
    Value between = LinearOp::create(builder, loc, narrow, linear.getInput(), *down);
    linear.getInputMutable().set(between);
    replaceWeight(linear.getWeightMutable(), *up);
    if (PruneReport *page = PruneReport::of(&getContext())) {
      auto layer = linear->getParentOfType<LayerOp>();
      const int64_t full = std::min(weight->N, weight->K);
      page->records.push_back({kPass.str(), "ranks of " + name, layer ? int64_t(layer.getIndex()) : -1, full - rank, full, -1,
                               {factors->lost, factors->lost}});
    }
    report(linear, kPass, "rank " + Twine(rank) + " of " + Twine(std::min(weight->N, weight->K)) + ", " +
                              Twine(int64_t(1000 * factors->lost)) + " of 1000 parts of the output lost");
    return success();
  }

  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
};

} // namespace
