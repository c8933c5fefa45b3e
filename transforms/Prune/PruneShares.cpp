// The passes that take a share of each layer's channels, heads or widths.
#include "transforms/Passes.h"
#include "transforms/Prune/SiteKinds.h"
#include "transforms/Remarks.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNEFFNPASS
#define GEN_PASS_DEF_PRUNEHEADDIMPASS
#define GEN_PASS_DEF_PRUNEHEADSPASS
#define GEN_PASS_DEF_PRUNEKVHEADSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// As many whole units go as the share allows.
static LogicalResult pruneShare(ModuleOp module, SiteKind kind, double ratio, const PruneSettings &settings) {
  if (failed(checkShare(module, settings.pass, ratio)) || failed(checkUnit(module, settings.pass, settings.unit)) ||
      failed(checkUnit(module, settings.pass, settings.cacheUnit)) ||
      (kind != SiteKind::FeedForward && failed(checkNotFused(module, settings.pass))))
    return failure();
  IRRewriter rewriter(module.getContext());
  int64_t seen = 0, gone = 0;
  SiteSize coarsest{};
  if (failed(pruneSites(module, kind, settings, [&](const SiteSize &site) -> FailureOr<int64_t> {
        const int64_t most = std::min(int64_t(ratio * double(site.size) + 1e-9), site.size - site.least);
        const int64_t removed = most / site.unit * site.unit;
        ++seen, gone += removed;
        if (seen == 1 || site.unit * coarsest.size > coarsest.unit * site.size)
          coarsest = site;
        if (removed == 0 && ratio > 0)
          (void)refuse(rewriter, site.at, settings.pass,
                       "of " + Twine(site.size) + " " + site.what + " no whole " + Twine(site.unit) + " go at this ratio" +
                           (site.least > 1 ? ", and at least " + Twine(site.least) + " stay" : Twine()));
        return site.size - removed;
      })))
    return failure();
  if (ratio > 0 && seen == 0)
    return module.emitError() << settings.pass << " finds nothing in this model that it can take: heads that are made from a "
                                 "latent (MLA), or that belong to more than their layer, stay";
  if (ratio > 0 && gone == 0) {
    std::string share;
    llvm::raw_string_ostream(share) << llvm::format("%g", ratio);
    module.emitWarning() << settings.pass << " takes none of the " << coarsest.what << " at a ratio of " << share << ": of "
                         << coarsest.size << " they go in units of " << coarsest.unit;
  }
  return success();
}

namespace {

struct PruneFFNPass final : llm::impl::PruneFFNPassBase<PruneFFNPass> {
  using PruneFFNPassBase::PruneFFNPassBase;
  void runOnOperation() override {
    if (failed(pruneShare(getOperation(), SiteKind::FeedForward, ratio, {getArgument(), score, recover, tokens, window, unit})))
      signalPassFailure();
  }
};

struct PruneHeadDimPass final : llm::impl::PruneHeadDimPassBase<PruneHeadDimPass> {
  using PruneHeadDimPassBase::PruneHeadDimPassBase;
  void runOnOperation() override {
    if (failed(pruneShare(getOperation(), SiteKind::HeadWidth, ratio,
                          {getArgument(), score, recover, tokens, window, unit, cacheUnit})))
      signalPassFailure();
  }
};

struct PruneHeadsPass final : llm::impl::PruneHeadsPassBase<PruneHeadsPass> {
  using PruneHeadsPassBase::PruneHeadsPassBase;
  void runOnOperation() override {
    if (failed(pruneShare(getOperation(), SiteKind::QueryHeads, ratio, {getArgument(), score, recover, tokens, window, unit})))
      signalPassFailure();
  }
};

struct PruneKVHeadsPass final : llm::impl::PruneKVHeadsPassBase<PruneKVHeadsPass> {
  using PruneKVHeadsPassBase::PruneKVHeadsPassBase;
  void runOnOperation() override {
    if (failed(pruneShare(getOperation(), SiteKind::KVHeads, ratio, {getArgument(), score, recover, tokens, window, unit})))
      signalPassFailure();
  }
};

} // namespace
