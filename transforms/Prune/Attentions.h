// The attention of each layer as a pruning pass sees it: which groups of channels its heads and their widths are.
#ifndef SPRIG_TRANSFORMS_PRUNE_ATTENTIONS_H
#define SPRIG_TRANSFORMS_PRUNE_ATTENTIONS_H

#include "transforms/Prune/Channels.h"

namespace mlir::llm {

struct AttentionSite {
  AttentionOp op;
  ChannelGroup *queryHeads, *kvHeads, *keyWidth, *valueWidth;

  /// Query heads that read one key-value head: heads h*shared to (h+1)*shared - 1 read h.
  int64_t shared() const { return queryHeads->size / kvHeads->size; }
};

/// What fills the cache of an attention within its own layer, or null.
KVAppendOp appendOf(AttentionOp attention);

/// Every attention whose cache is filled within its own layer, and whose heads can go. Others are left, with a `missed`
/// remark of `pass`.
SmallVector<AttentionSite> attentionsOf(func::FuncOp function, const ChannelGroups &groups, StringRef pass);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_ATTENTIONS_H
