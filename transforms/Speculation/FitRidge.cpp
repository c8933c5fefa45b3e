#include "transforms/Speculation/FitRidge.h"

#include "transforms/Speculation/HeadSite.h"
#include "llvm/ADT/ScopeExit.h"
#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::llm;

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Of so many windows one is not fitted to.
static constexpr int64_t kHeldEvery = 8;

namespace {

/// States, normed states and embeddings of every window.
class States final : public ActivationVisitor {
public:
  States(Operation *first, Operation *last, Operation *norm) : first(first), last(last), norm(norm) {}

  bool wants(Operation *op) override { return op == first || op == last || op == norm; }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input,
                      const ActivationRows &output) override {
    if (op == first)
      embedded[window] = rowsOf(input);
    if (op == last)
      hidden[window] = rowsOf(output);
    if (op == norm)
      normed[window] = rowsOf(output);
    return success();
  }

  std::map<int64_t, Rows> hidden, normed, embedded;

private:
  static Rows rowsOf(const ActivationRows &rows) {
    return Eigen::Map<const Rows>(rows.numbers.data(), rows.rows, rows.width);
  }

  Operation *first, *last, *norm;
};

/// [norm(h_t), emb(x_t+1), 1] and h_t+1 of unit root mean square.
struct Pairs {
  Rows inputs, outputs;
};

Pairs pairsOf(const Rows &hidden, const Rows &normed, const Rows &embedded) {
  const Eigen::Index count = hidden.rows() - 1, D = hidden.cols();
  Pairs pairs{Rows(count, 2 * D + 1), hidden.bottomRows(count)};
  pairs.inputs << normed.topRows(count), embedded.bottomRows(count), Eigen::VectorXf::Ones(count);
  for (Eigen::Index t = 0; t < count; ++t) {
    const float norm = pairs.outputs.row(t).norm();
    if (norm > 0)
      pairs.outputs.row(t) *= std::sqrt(float(D)) / norm;
  }
  return pairs;
}

} // namespace

FailureOr<RidgeHeads> mlir::llm::fitRidge(func::FuncOp forward, const RidgeOptions &options) {
  ActivationSource *text = ActivationSource::of(forward.getContext());
  if (!text)
    return forward.emitOpError("needs hidden states to fit heads to: name a text");
  // The final norm reads every position, not the last alone.
  func::FuncOp every = cloneForEveryPosition(forward);
  const ::llvm::scope_exit clean([&] { every.erase(); });
  FailureOr<HeadSite> site = HeadSite::of(every);
  if (failed(site))
    return failure();
  Operation *norm = site->product().getInput().getDefiningOp();
  States states(*every.getOps<LayerOp>().begin(), site->hidden.getDefiningOp(), norm);
  if (!norm)
    return forward.emitOpError("expects a norm before the head to fit heads to, but got none");
  if (failed(text->visit(every, options.text, states)))
    return failure();

  const int64_t D = site->width(), K = 2 * D + 1, windows = int64_t(states.hidden.size());
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(K, K), cross = Eigen::MatrixXd::Zero(K, D);
  RidgeHeads heads;
  heads.width = D;
  const auto isHeld = [&](int64_t window) { return windows >= kHeldEvery && window % kHeldEvery == kHeldEvery - 1; };
  const auto pairsAt = [&](int64_t w) {
    return pairsOf(states.hidden.at(w), states.normed.at(w), states.embedded.at(w));
  };
  for (int64_t w = 0; w < windows; ++w) {
    if (isHeld(w) || states.hidden.at(w).rows() < 2)
      continue;
    const Pairs pairs = pairsAt(w);
    heads.pairs += pairs.inputs.rows();
    // Sums of a window in f32, of windows in f64.
    gram += Eigen::MatrixXf(pairs.inputs.transpose() * pairs.inputs).cast<double>();
    cross += Eigen::MatrixXf(pairs.inputs.transpose() * pairs.outputs).cast<double>();
  }
  if (heads.pairs < 1)
    return forward.emitOpError("expects windows of at least 2 tokens to fit heads to, but got ") << options.text.window;
  // Hidden states and embeddings differ in size by orders of magnitude: each has a damping of its own.
  for (int64_t from : {int64_t(0), D})
    gram.diagonal().segment(from, D).array() += options.damping * gram.diagonal().segment(from, D).mean() + 1e-30;
  const Eigen::LLT<Eigen::MatrixXd> factor(gram);
  const Eigen::MatrixXd solved = factor.solve(cross);
  if (factor.info() != Eigen::Success || !solved.allFinite())
    return forward.emitOpError("expects hidden states that can be fitted, but their second moments cannot be inverted");
  const Eigen::MatrixXf weights = solved.cast<float>();

  double left = 0, all = 0;
  for (int64_t w = 0; w < windows; ++w) {
    if (!isHeld(w))
      continue;
    const Pairs pairs = pairsAt(w);
    heads.held += pairs.inputs.rows();
    left += (pairs.inputs * weights - pairs.outputs).squaredNorm();
    all += (pairs.outputs.rowwise() - pairs.outputs.colwise().mean()).squaredNorm();
  }
  heads.explained = all > 0 ? 1 - left / all : 0;
  const auto write = [&](std::vector<float> &to, Eigen::Index from) {
    to.resize(size_t(D * D));
    Eigen::Map<Rows>(to.data(), D, D) = weights.middleRows(from, D).transpose();
  };
  write(heads.hidden, 0);
  write(heads.embedding, D);
  heads.bias.assign(size_t(D), 0);
  Eigen::Map<Eigen::RowVectorXf>(heads.bias.data(), D) = weights.row(2 * D);
  return heads;
}
