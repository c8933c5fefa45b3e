#include "mlir/Pass/PassManager.h"
#include "transforms/Passes.h"
#include "transforms/Prune/SiteKinds.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNETOSHAPEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-to-shape";

namespace {

struct PruneToShapePass final : llm::impl::PruneToShapePassBase<PruneToShapePass> {
  using PruneToShapePassBase::PruneToShapePassBase;

  void runOnOperation() override {
    if (failed(pruneLayers()) || failed(prune(SiteKind::KVHeads, kvHeads, "kv-heads")) ||
        failed(prune(SiteKind::QueryHeads, heads, "heads")) ||
        failed(prune(SiteKind::HeadWidth, headDim, "head-dim")) ||
        failed(prune(SiteKind::FeedForward, ffn, "ffn")) || failed(pruneWidth()))
      signalPassFailure();
  }

private:
  std::string common() const {
    return " recover=" + std::string(recover ? "true" : "false") + " tokens=" + std::to_string(tokens) +
           " window=" + std::to_string(window);
  }

  LogicalResult pruneLayers() {
    if (layers < 0)
      return success();
    int64_t have = 0;
    getOperation().walk([&](LayerOp) { ++have; });
    if (layers < 1 || layers > have)
      return getOperation().emitError() << kPass << " expects 1 to " << have << " layers to stay, but got "
                                        << int64_t(layers);
    OpPassManager passes("builtin.module");
    const std::string pipeline = "llm-prune-layers{count=" + std::to_string(have - layers) +
                                 (score == "wanda" ? "" : " score=random") + common() + "},llm-remove-dead-state";
    if (failed(parsePassPipeline(pipeline, passes)))
      return failure();
    return runPipeline(passes, getOperation());
  }

  /// One number for all layers, or one for each.
  LogicalResult prune(SiteKind kind, ArrayRef<int64_t> stay, StringRef option) {
    if (stay.empty())
      return success();
    int64_t sites = 0;
    const PruneSettings settings{kPass, score, recover, tokens, window};
    LogicalResult done = pruneSites(getOperation(), kind, settings, [&](const SiteSize &site) -> FailureOr<int64_t> {
      sites = std::max(sites, site.index + 1);
      if (stay.size() > 1 && site.index >= int64_t(stay.size()))
        return site.at->emitOpError("expects a number for each layer in ")
                   << option << ", but got " << stay.size() << " of them",
               failure();
      const int64_t wanted = stay.size() > 1 ? stay[size_t(site.index)] : stay[0];
      if (wanted < site.least || wanted > site.size || (site.size - wanted) % site.unit)
        return site.at->emitOpError("expects ")
                   << option << " to leave " << site.least << " to " << site.size << " " << site.what << ", fewer by a multiple of "
                   << site.unit << ", but got " << wanted,
               failure();
      return wanted;
    });
    if (succeeded(done) && stay.size() > 1 && int64_t(stay.size()) != sites)
      return getOperation().emitError() << kPass << " expects one number or " << sites << " in " << option
                                        << ", one for each layer, but got " << stay.size();
    return done;
  }

  LogicalResult pruneWidth() {
    if (width < 0)
      return success();
    int64_t have = 0;
    getOperation().walk([&](EmbeddingOp op) { have = cast<ShapedType>(op.getResult().getType()).getDimSize(1); });
    if (width < 1 || width > have)
      return getOperation().emitError() << kPass << " expects a width of 1 to " << have << ", but got "
                                        << int64_t(width);
    OpPassManager passes("builtin.module");
    const std::string pipeline = "llm-prune-width{ratio=" + std::to_string(1 - double(width) / double(have)) +
                                 " score=" + score + common() + "}";
    if (failed(parsePassPipeline(pipeline, passes)) || failed(runPipeline(passes, getOperation())))
      return failure();
    int64_t left = 0;
    getOperation().walk([&](EmbeddingOp op) { left = cast<ShapedType>(op.getResult().getType()).getDimSize(1); });
    if (left != width)
      return getOperation().emitError() << kPass << " expects a width that leaves whole blocks of the weights' formats, but "
                                        << int64_t(width) << " does not: the nearest above is " << left;
    return success();
  }
};

} // namespace
