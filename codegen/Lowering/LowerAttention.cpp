// Attention, over a sequence and over a tree.
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/AttentionCombine.h"
#include "codegen/Kernels/AttentionGroups.h"
#include "codegen/Kernels/AttentionSchedule.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult lowerHandle(ProgramLowering &p, KVOp op) {
  return p.target().cache(op);
}

/// Chooses tokens a workgroup and splits for a step of the program's width.
LogicalResult chooseSplits(ProgramLowering &p, AttentionSpec &spec,
                           Operation *op) {
  FailureOr<AttentionSchedule> schedule =
      AttentionSchedule::from(p.profile(), [&] { return op->emitOpError(); });
  if (failed(schedule))
    return failure();
  if (schedule->groupNumbers && !spec.integers &&
      spec.lanesAlongHead(p.profile())) {
    const int64_t most =
        std::max<int64_t>(1, schedule->groupNumbers / spec.headSize);
    spec.group = most < spec.groupHeads() ? most : 0;
  }
  spec.split = AttentionSpec::splitFor(spec.capacity);
  // The nodes of a tree read different slots.
  spec.tokens = spec.tree ? 1 : spec.tokensFor(p.width(), p.profile());
  // Wide steps keep the device busy without workgroups for each split, and
  // need no memory for the results of splits then.
  int64_t groups = spec.heads / spec.groupHeads() *
                   ((p.width() + spec.tokens - 1) / spec.tokens);
  int64_t parts = spec.partsFor(p.width());
  spec.parts = groups < schedule->groups && parts > 1 ? parts : 0;
  // Each part of the cache leaves results of its splits.
  if (spec.cache)
    spec.parts = parts;
  return success();
}

/// The counts of workgroups for `spec`: written once a program, before the
/// first attention of that shape.
struct Counts {
  Value attention, combine;
};
FailureOr<Counts> countsFor(ProgramLowering &p, const AttentionSpec &spec,
                            Operation *op) {
  DictionaryAttr groups = AttentionGroupsSpec(spec).toAttr(p.context());
  auto name = [&](StringRef which) {
    return p.ops().getArrayAttr({groups, p.ops().getStringAttr(which)});
  };
  Counts counts{p.remembered(name("attention")), p.remembered(name("combine"))};
  if (counts.attention)
    return counts;
  counts.attention = p.scratch("groups", AttentionGroupsSpec::kBytes);
  counts.combine = p.scratch("groups", AttentionGroupsSpec::kBytes);
  p.remembered(name("attention")) = counts.attention;
  p.remembered(name("combine")) = counts.combine;
  if (failed(p.dispatch(op, AttentionGroupsSpec::kFamily, groups,
                        {{"control", p.controlView()},
                         {"attention", counts.attention},
                         {"combine", counts.combine}},
                        1, "groups")))
    return failure();
  return counts;
}

/// Scores, and values weighed by them, over all that a token may see; every
/// workgroup reads the keys and values of its head.
ContextWork workOf(const AttentionSpec &spec, int64_t width) {
  int64_t seen = spec.window ? std::min(spec.window + spec.sinks,
                                        spec.capacity)
                             : spec.capacity;
  if (const BlockShape &blocks = spec.blocks)
    seen = std::min(seen, (blocks.local + blocks.first) * blocks.size +
                              (blocks.stride ? spec.capacity / blocks.stride
                                             : 0));
  const int64_t tiles = llvm::divideCeilSigned(width, spec.tokens);
  const KvFormat format = KvFormat::named(spec.kv);
  const int64_t head =
      4 * (format.headWords(spec.headSize) + format.groups(spec.headSize));
  return {2 * width * spec.heads * spec.headSize * seen,
          2 * tiles * (spec.heads / spec.groupHeads()) * seen * head};
}

LogicalResult dispatchAttention(ProgramLowering &p, const AttentionSpec &spec,
                                const CachePlan &cache, Operation *op,
                                SmallVector<Operand> operands) {
  Counts counts;
  if (spec.parts) {
    FailureOr<Counts> written = countsFor(p, spec, op);
    if (failed(written))
      return failure();
    counts = *written;
    // What of it is written follows the context, so nothing counts as touched.
    uint64_t rows = uint64_t(p.paddedRows(p.width()));
    uint64_t results = rows * uint64_t(spec.heads * spec.parts);
    operands.push_back(
        {"partial", p.scratch("splits", results * uint64_t(spec.headSize) * 4),
         0});
    operands.push_back({"stats", p.scratch("split weights", results * 8), 0});
  }
  if (failed(p.dispatchOnCache(
          op, AttentionSpec::kFamily, spec.toAttr(p.context()), cache, operands,
          p.width(), "attention", counts.attention, workOf(spec, p.width()),
          spec.cache ? spec.cache.part / spec.split : 1)))
    return failure();
  if (!spec.parts)
    return success();
  return p.dispatch(op, AttentionCombineSpec::kFamily,
                    AttentionCombineSpec(spec).toAttr(p.context()), operands,
                    p.width(), "attention, combine", 0, counts.combine,
                    {0, p.width() * spec.heads * spec.parts * spec.headSize * 4});
}

/// What attention over a sequence and over a tree have in common.
template <typename AttentionT>
LogicalResult lowerAnyAttention(ProgramLowering &p, AttentionT op, Value tree) {
  if (!p.view(op.getQuery()))
    return op.emitOpError(
        "expects an append to its cache before it, but got none");
  FailureOr<CachePlan> cache =
      p.target().cache(op.getCache().template getDefiningOp<KVOp>());
  if (failed(cache))
    return failure();
  AttentionSpec spec;
  spec.headSize = op.getCache().getType().getKeyWidth();
  spec.kvHeads = op.getCache().getType().getHeads();
  spec.heads = cast<RankedTensorType>(op.getQuery().getType()).getShape()[1];
  spec.capacity = p.target().capacity();
  spec.kv = cache->format;
  spec.cache = cache->parts;
  spec.scale = op.getScale().convertToDouble();
  spec.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  spec.window = op.getWindow().value_or(0);
  spec.sinks = op.getSinks().value_or(0);
  spec.tree = tree ? kTreeStride : 0;
  spec.valueSize = shorterValue(op.getCache().getType());
  spec.bias = bool(op.getBias());
  spec.hidden = op.getFirst().value_or(0);
  spec.integers = op.getIntegers();
  if (BlockMaskAttr blocks = op.getBlocksAttr())
    spec.blocks = {blocks.getSize(), blocks.getLocal(), blocks.getFirst(),
                   blocks.getStride()};
  if (failed(chooseSplits(p, spec, op)))
    return failure();
  SmallVector<Operand> operands = {
      {"q", p.view(op.getQuery())},
      {"control", p.controlView()}};
  operands.append(p.cacheOperands(*cache));
  operands.push_back({"y", p.allocate(op.getResult(), p.width())});
  if (tree)
    operands.push_back({"tree", tree});
  if (spec.bias) {
    FailureOr<Value> slopes = p.vectorWeight(op.getBias(), op);
    if (failed(slopes))
      return failure();
    operands.push_back({"bias", *slopes});
  }
  return dispatchAttention(p, spec, *cache, op, operands);
}

LogicalResult lowerAttention(ProgramLowering &p, AttentionOp op) {
  if (op.getMask() != MaskKind::Causal)
    return op.emitOpError("expects a causal mask, but got another");
  FailureOr<Value> tree = treeOf(p, op, op.getPositions(), /*base=*/{});
  return failed(tree) ? failure() : lowerAnyAttention(p, op, *tree);
}

LogicalResult lowerTreeAttention(ProgramLowering &p, TreeAttentionOp op) {
  auto mask = p.resolve(op.getMask()).getDefiningOp<TreeMaskOp>();
  if (!mask || mask != p.resolve(op.getPositions()).getDefiningOp())
    return op.emitOpError("expects the mask and the positions of one tree, but "
                          "got others");
  FailureOr<Value> tree = treeOf(p, op, op.getPositions(), op.getBase());
  return failed(tree) ? failure() : lowerAnyAttention(p, op, *tree);
}

} // namespace

ArrayRef<OpLoweringRow> attentionLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<AttentionOp, lowerAttention>(),
      loweringOf<KVOp, lowerHandle>(),
      loweringOf<TreeAttentionOp, lowerTreeAttention>(),
  };
  return rows;
}

} // namespace mlir::llm
