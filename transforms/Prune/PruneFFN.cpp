#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Remarks.h"

#include <cmath>
#include <random>

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNEFFNPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-ffn";

namespace {

/// The products of a gated feed-forward block: channel i is row i of gate and up, and column i of down.
struct FeedForward {
  LinearOp gate, up, down;
  GatedActivationOp mixed;
};

struct PruneFFNPass final : llm::impl::PruneFFNPassBase<PruneFFNPass> {
  using PruneFFNPassBase::PruneFFNPassBase;

  void runOnOperation() override {
    const bool known = score == "random" || score == "magnitude" || score == "wanda";
    if (!(ratio >= 0 && ratio < 1) || !known) {
      auto error = getOperation().emitError() << kPass << " expects ";
      known ? error << "a ratio from 0 to below 1, but got " << double(ratio)
            : error << "a score random, magnitude or wanda, but got '" << score << "'";
      return signalPassFailure();
    }
    store = weightStoreOf(getOperation());
    spill = store ? store->spill(getOperation()) : nullptr;
    if (!spill)
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(prune(function)))
        return signalPassFailure();
    if (widest)
      describeModel(getOperation(), "feed_forward", widest);
  }

private:
  static SmallVector<FeedForward> blocksIn(Operation *op) {
    SmallVector<FeedForward> blocks;
    op->walk([&](GatedActivationOp mixed) {
      auto gate = mixed.getGate().getDefiningOp<LinearOp>(), up = mixed.getUp().getDefiningOp<LinearOp>();
      auto down = mixed->hasOneUse() ? dyn_cast<LinearOp>(*mixed->user_begin()) : LinearOp();
      const bool plain = gate && up && down && gate != up && gate->hasOneUse() && up->hasOneUse() &&
                         !gate.getResidual() && !up.getResidual() && down.getInput() == mixed.getResult() &&
                         !down.getGamma() && cast<ShapedType>(mixed.getType()).getRank() == 2 &&
                         !isa<QuantizedType>(cast<ShapedType>(mixed.getType()).getElementType());
      if (plain)
        blocks.push_back({gate, up, down, mixed});
    });
    return blocks;
  }

  LogicalResult prune(func::FuncOp function) {
    if (score != "wanda" && !recover) {
      for (const FeedForward &block : blocksIn(function))
        if (failed(prune(block, nullptr)))
          return failure();
      return success();
    }
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations for ")
             << (recover ? StringRef("recovery") : StringRef("the score wanda")) << ": name a text with --calibrate";
    llvm::DenseSet<Operation *> downs;
    for (const FeedForward &block : blocksIn(function))
      downs.insert(block.down);
    StatisticsRequest request;
    request.wants = [&](Operation *op) { return downs.contains(op); };
    request.gram = recover;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                for (const FeedForward &block : blocksIn(layer)) {
                                  auto found = inputs.find(block.down);
                                  if (found != inputs.end() && failed(prune(block, found->second.get())))
                                    return failure();
                                }
                                return LayerChange::Rewritten;
                              });
  }

  FailureOr<std::vector<double>> scores(FeedForward block, const Matrix &down, const InputStatistics *inputs) {
    std::vector<double> result(size_t(down.K), 0);
    if (score == "random") {
      std::uniform_real_distribution<double> uniform;
      for (double &value : result)
        value = uniform(random);
      return result;
    }
    for (int64_t n = 0; n < down.N; ++n)
      for (int64_t k = 0; k < down.K; ++k)
        result[size_t(k)] += double(down.row(n)[size_t(k)]) * down.row(n)[size_t(k)];
    if (score == "wanda") {
      for (auto [value, square] : llvm::zip(result, inputs->squares))
        value *= square;
      return result;
    }
    for (LinearOp rows : {block.gate, block.up}) {
      FailureOr<Matrix> weight = readMatrix(rows.getWeight(), *store, rows);
      if (failed(weight))
        return failure();
      for (int64_t n = 0; n < weight->N; ++n)
        for (float w : weight->row(n))
          result[size_t(n)] += double(w) * w;
    }
    return result;
  }

  LogicalResult prune(FeedForward block, const InputStatistics *inputs) {
    FailureOr<Matrix> down = readMatrix(block.down.getWeight(), *store, block.down);
    if (failed(down))
      return failure();
    const auto downType = cast<RankedTensorType>(block.down.getWeight().getType());
    // Whole blocks of the format stay, so that the format can.
    const int64_t unit = std::max<int64_t>(blockOf(downType) > 32 ? 32 : blockOf(downType), 1);
    const int64_t removed = int64_t(double(ratio) * double(down->K)) / unit * unit, keep = down->K - removed;
    widest = std::max(widest, keep);
    if (removed == 0)
      return success();
    FailureOr<std::vector<double>> value = scores(block, *down, inputs);
    if (failed(value))
      return failure();
    const SmallVector<int64_t> kept = largest(*value, keep);
    Matrix columns = chooseColumns(*down, kept);
    if (recover) {
      FailureOr<Matrix> refitted = refitColumns(*down, inputs->gram, kept, 0.01);
      if (failed(refitted))
        return block.down->emitOpError("expects inputs that can be fitted, but their second moments cannot be inverted");
      columns = std::move(*refitted);
    }
    const Location loc = block.down.getLoc();
    OpBuilder builder(block.gate->isBeforeInBlock(block.up) ? block.gate : block.up);
    FailureOr<Value> index = writeIndex(builder, loc, *spill, weightName(block.down.getWeight()) + ".channels", kept);
    if (failed(index))
      return failure();
    for (LinearOp rows : {block.gate, block.up}) {
      OpBuilder at(rows);
      rows.getWeightMutable().set(GatherOp::create(at, loc, rows.getWeight(), *index, 0));
      if (rows.getBias())
        rows.getBiasMutable()[0].set(GatherOp::create(at, loc, rows.getBias(), *index, 0));
      rows.getResult().setType(narrowed(rows.getType(), keep));
    }
    block.mixed.getResult().setType(narrowed(cast<RankedTensorType>(block.mixed.getType()), keep));
    OpBuilder at(block.down);
    FailureOr<Value> weight =
        writeLike(at, loc, *spill, weightName(block.down.getWeight()) + ".pruned", downType, columns);
    if (failed(weight))
      return failure();
    replaceWeight(block.down.getWeightMutable(), *weight);
    report(block.down, kPass, Twine(removed) + " of " + Twine(removed + keep) + " channels removed");
    return success();
  }

  static RankedTensorType narrowed(RankedTensorType type, int64_t width) {
    return RankedTensorType::get({type.getDimSize(0), width}, type.getElementType());
  }

  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
  int64_t widest = 0;
  std::mt19937_64 random{1};
};

} // namespace
