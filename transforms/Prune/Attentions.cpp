#include "transforms/Prune/Attentions.h"

#include "transforms/Remarks.h"

using namespace mlir;
using namespace mlir::llm;

KVAppendOp mlir::llm::appendOf(AttentionOp attention) {
  auto handle = attention.getCache().getDefiningOp<KVOp>();
  auto layer = attention->getParentOfType<LayerOp>();
  KVAppendOp found;
  if (handle && layer)
    layer.walk([&](KVAppendOp append) {
      auto other = append.getCache().getDefiningOp<KVOp>();
      if (other && other.getCache() == handle.getCache() && other.getIndex() == handle.getIndex())
        found = append;
    });
  return found;
}

SmallVector<AttentionSite> mlir::llm::attentionsOf(func::FuncOp function, const ChannelGroups &groups, StringRef pass) {
  SmallVector<AttentionSite> sites;
  IRRewriter rewriter(function.getContext());
  function.walk([&](AttentionOp op) {
    KVAppendOp append = appendOf(op);
    if (!append || !append.getValue())
      return void(refuse(rewriter, op, pass, "its keys and values are not made in its own layer"));
    AttentionSite site{op, groups.of(op.getQuery(), 1), groups.of(append.getKey(), 1), groups.of(op.getQuery(), 2),
                       groups.of(op.getResult(), 2)};
    for (ChannelGroup *group : {site.queryHeads, site.kvHeads, site.keyWidth, site.valueWidth})
      if (!group || !group->fixed.empty() || !group->layer())
        return void(refuse(rewriter, op, pass,
                           group && !group->fixed.empty() ? Twine("its heads cannot go: ") + group->fixed
                                                          : Twine("its heads belong to more than its layer")));
    sites.push_back(site);
  });
  return sites;
}
