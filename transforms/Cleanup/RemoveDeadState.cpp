#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_REMOVEDEADSTATEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-remove-dead-state";

namespace {

/// The handles to one cache.
struct Cache {
  SmallVector<KVOp> handles;
  bool read = false;
};

/// Caches of each symbol by index.
using Caches = llvm::MapVector<KVCacheOp, SmallVector<Cache>>;

struct RemoveDeadStatePass final
    : llm::impl::RemoveDeadStatePassBase<RemoveDeadStatePass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    // What fed a dead cache may have been the only reader of another.
    Caches caches;
    bool erased = true;
    while (erased) {
      // Attention whose result nobody uses reads nothing that matters.
      (void)runRegionDCE(rewriter, getOperation()->getRegions());
      caches = findCaches();
      erased = false;
      for (auto &[symbol, slots] : caches)
        for (Cache &cache : slots)
          erased |= !cache.read && eraseWriters(rewriter, cache);
    }
    for (auto &[symbol, slots] : caches)
      renumber(rewriter, symbol, slots);
    reportEscapes(rewriter);
    eraseUnusedSources(rewriter);
  }

private:
  Caches findCaches() {
    Caches caches;
    getOperation().walk(
        [&](KVCacheOp symbol) { caches[symbol].resize(symbol.getCount()); });
    SymbolTableCollection symbols;
    getOperation().walk([&](KVOp handle) {
      auto symbol = symbols.lookupNearestSymbolFrom<KVCacheOp>(
          handle, handle.getCacheAttr());
      Cache &cache = caches[symbol][handle.getIndex()];
      cache.handles.push_back(handle);
      cache.read |= !llvm::all_of(handle->getUsers(), onlyWrites);
    });
    return caches;
  }

  static bool onlyWrites(Operation *user) {
    return isa<KVAppendOp, KVCompactOp, KVEvictOp>(user);
  }

  /// True where there was one.
  static bool eraseWriters(IRRewriter &rewriter, Cache &cache) {
    bool erased = false;
    for (KVOp handle : cache.handles)
      for (Operation *writer : llvm::make_early_inc_range(handle->getUsers())) {
        report(writer, kPass, "writes a cache that nobody reads");
        rewriter.eraseOp(writer);
        erased = true;
      }
    return erased;
  }

  void reportEscapes(IRRewriter &rewriter) {
    getOperation().walk([&](KVOp handle) {
      for (Operation *user : handle->getUsers())
        if (!onlyWrites(user) && !isa<AttentionOp, TreeAttentionOp, PreviousRowsOp>(user))
          (void)refuse(rewriter, user, kPass,
                       "the handle of a cache leaves the ops of the dialect");
    });
  }

  static void renumber(IRRewriter &rewriter, KVCacheOp symbol,
                       ArrayRef<Cache> slots) {
    int64_t next = 0;
    for (const Cache &cache : slots) {
      if (cache.handles.empty())
        continue;
      for (KVOp handle : cache.handles)
        rewriter.modifyOpInPlace(handle, [&] { handle.setIndex(next); });
      ++next;
    }
    if (next == int64_t(symbol.getCount()))
      return;
    report(symbol, kPass,
           Twine(symbol.getCount() - next) + " of " + Twine(symbol.getCount()) +
               " caches are unused");
    if (next == 0)
      rewriter.eraseOp(symbol);
    else
      rewriter.modifyOpInPlace(symbol, [&] { symbol.setCount(next); });
  }

  void eraseUnusedSources(IRRewriter &rewriter) {
    for (SourceOp source :
         llvm::make_early_inc_range(getOperation().getOps<SourceOp>())) {
      if (!SymbolTable::symbolKnownUseEmpty(source, getOperation()))
        continue;
      report(source, kPass, "the source is unused");
      rewriter.eraseOp(source);
    }
  }
};

} // namespace
