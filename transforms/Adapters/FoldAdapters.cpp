#include "transforms/Passes.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Remarks.h"

#include <Eigen/Core>

namespace mlir::llm {
#define GEN_PASS_DEF_FOLDADAPTERSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fold-adapters";

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace {

struct FoldAdaptersPass final : llm::impl::FoldAdaptersPassBase<FoldAdaptersPass> {
  using FoldAdaptersPassBase::FoldAdaptersPassBase;

  void runOnOperation() override {
    SmallVector<LinearOp> branches;
    getOperation().walk([&](LinearOp linear) {
      if (whole(linear))
        branches.push_back(linear);
    });
    if (branches.empty())
      return;
    WeightStore *store = weightStoreOf(getOperation());
    WeightSpill *spill = store ? store->spill(getOperation()) : nullptr;
    if (!spill)
      return signalPassFailure();
    for (LinearOp branch : branches)
      if (failed(fold(branch, *store, *spill)))
        return signalPassFailure();
  }

private:
  /// The product that a branch is added to, or null where an op is no such sum.
  static LinearOp whole(LinearOp up) {
    auto sum = up.getResidual() ? up.getResidual().getDefiningOp<LinearOp>() : LinearOp();
    auto down = up.getInput().getDefiningOp<LinearOp>();
    const auto plain = [](LinearOp op) { return !op.getGamma() && !op.getRowScale() && !op.getBias(); };
    const bool found = sum && down && sum != down && sum->hasOneUse() && down->hasOneUse() && plain(up) && plain(down) &&
                       !down.getResidual() && !sum.getGamma() && sum.getInput() == down.getInput() &&
                       cast<ShapedType>(sum.getWeight().getType()).getRank() == 2;
    return found ? sum : LinearOp();
  }

  LogicalResult fold(LinearOp up, WeightStore &store, WeightSpill &spill) {
    LinearOp sum = whole(up), down = up.getInput().getDefiningOp<LinearOp>();
    FailureOr<Matrix> weight = readMatrix(sum.getWeight(), store, sum), A = readMatrix(down.getWeight(), store, down),
                      B = readMatrix(up.getWeight(), store, up);
    if (failed(weight) || failed(A) || failed(B))
      return failure();
    Eigen::Map<Rows>(weight->numbers.data(), weight->N, weight->K).noalias() +=
        Eigen::Map<const Rows>(B->numbers.data(), B->N, B->K) * Eigen::Map<const Rows>(A->numbers.data(), A->N, A->K);
    OpBuilder builder(sum);
    FailureOr<Value> value = writeLike(builder, sum.getLoc(), spill, weightName(sum.getWeight()) + ".adapted",
                                       cast<RankedTensorType>(sum.getWeight().getType()), *weight);
    if (failed(value))
      return failure();
    replaceWeight(sum.getWeightMutable(), *value);
    up.getResult().replaceAllUsesWith(sum.getResult());
    report(sum, kPass, "an adapter of rank " + Twine(A->N) + " is part of the weight");
    eraseDead(up);
    return success();
  }
};

} // namespace
