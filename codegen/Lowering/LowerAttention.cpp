// Rotation, append and attention. One kernel rotates queries and keys and
// appends, so `llm.rope` and the slices of a fused QKV product are looked
// through, and the append does their work.
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/AttentionCombine.h"
#include "codegen/Kernels/AttentionGroups.h"
#include "codegen/Kernels/AttentionSchedule.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/RopeAppend.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

LogicalResult lowerHandle(ProgramLowering &p, KVOp op) {
  return p.target().cache(op);
}

/// Rotations, transforms and slices have no dispatch of their own.
LogicalResult defer(ProgramLowering &p, Operation *op) {
  for (Operation *user : op->getUsers())
    if (p.isNeeded(user) &&
        !isa<KVAppendOp, AttentionOp, TreeAttentionOp, RopeOp, HadamardOp>(
            user))
      return op->emitOpError(
                 "expects users that append to a cache or attend, but got '")
             << user->getName() << "'";
  return success();
}
LogicalResult lowerRope(ProgramLowering &p, RopeOp op) {
  // Whether the positions are a tree's is the append's to check.
  return defer(p, op);
}
LogicalResult lowerHadamard(ProgramLowering &p, HadamardOp op) {
  if (op.getSigns() || op.getInverse())
    return op.emitOpError("expects a plain transform of queries and keys, but "
                          "got signs or an inverse");
  if (!llvm::all_of(op->getUsers(), llvm::IsaPred<KVAppendOp, AttentionOp,
                                                  TreeAttentionOp>))
    return op.emitOpError("expects queries and keys on their way to a cache, "
                          "which kernels transform, but got users that are "
                          "something else");
  return success();
}
LogicalResult lowerSlice(ProgramLowering &p, SliceOp op) {
  return defer(p, op);
}

/// Rotations turn by the same angles.
bool sameRotation(RopeOp a, RopeOp b) {
  return a.getFrequencies() == b.getFrequencies() &&
         a->getAttrDictionary() == b->getAttrDictionary();
}

/// Frequencies of a rotation, in radians a position. Of two sets, the first is
/// that of all positions of a context that ends before the second.
FailureOr<SmallVector<double>> frequenciesOf(RopeOp rope, int64_t dims,
                                             int64_t capacity) {
  double scale = rope.getScale() ? rope.getScale()->convertToDouble() : 1.0;
  SmallVector<double> list;
  if (int64_t from = rope.getLongFrom().value_or(capacity); capacity > from)
    return rope.emitOpError("expects a context of at most ")
           << from << " positions, where the long frequencies begin, but got "
           << capacity << "; compile with --context=" << from;
  if (rope.getBase()) {
    double base = rope.getBase()->convertToDouble();
    for (int64_t i = 0; i < dims / 2; ++i)
      list.push_back(scale * std::pow(base, -2.0 * double(i) / double(dims)));
    return list;
  }
  auto weight = rope.getFrequencies().getDefiningOp<WeightOp>();
  auto values = weight && weight.isInline()
                    ? dyn_cast<DenseFPElementsAttr>(weight.getValueAttr())
                    : nullptr;
  if (!values)
    return rope.emitOpError(
        "expects frequencies that are inline, but got others");
  for (const APFloat &value :
       llvm::make_range(values.value_begin<APFloat>(),
                        std::next(values.value_begin<APFloat>(), dims / 2)))
    list.push_back(scale * value.convertToDouble());
  return list;
}

/// The rotation table of `rope` as a tensor of the module.
FailureOr<Value> tableOf(ProgramLowering &p, RopeOp rope,
                         const RopeAppendSpec &spec) {
  FailureOr<SmallVector<double>> frequencies =
      frequenciesOf(rope, spec.dims, spec.capacity);
  if (failed(frequencies))
    return failure();
  double amplitude =
      rope.getAmplitude() ? rope.getAmplitude()->convertToDouble() : 1.0;
  std::vector<float> table = ropeTable(*frequencies, spec.capacity, amplitude);
  auto type =
      RankedTensorType::get({int64_t(table.size())}, p.ops().getF32Type());
  return p.constant("rope.table",
                    DenseElementsAttr::get(type, ArrayRef(table)));
}

/// A head slice [begin, end) of a fused product, or the whole of `value`.
struct Heads {
  Value whole;
  int64_t begin, end;
};
Heads headsOf(ProgramLowering &p, Value value) {
  value = p.resolve(value);
  if (auto slice = value.getDefiningOp<SliceOp>())
    return {p.resolve(slice.getInput()), int64_t(slice.getBegin()),
            int64_t(slice.getEnd())};
  return {value, 0, cast<RankedTensorType>(value.getType()).getShape()[1]};
}

LogicalResult lowerAppend(ProgramLowering &p, KVAppendOp op) {
  FailureOr<Value> tree = treeOf(p, op, op.getPositions(), op.getBase());
  if (failed(tree))
    return failure();
  if (op.getSlots())
    return op.emitOpError("expects slots that are the positions, or a base, "
                          "but got slots of their own");
  Value query = p.function().queryOf(op);
  if (!query || !op.getValue())
    return op.emitOpError("expects an attention over the same cache and values "
                          "of their own, but got none");
  const Value attended = query;
  Value key = p.resolve(op.getKey());
  auto keyTransform = key.getDefiningOp<HadamardOp>(),
       queryTransform = query.getDefiningOp<HadamardOp>();
  if (bool(keyTransform) != bool(queryTransform) ||
      (keyTransform && keyTransform.getBlock() != queryTransform.getBlock()))
    return op.emitOpError("expects keys and queries that are transformed alike, "
                          "but got different Hadamard transforms");
  if (keyTransform) {
    key = p.resolve(keyTransform.getInput());
    query = p.resolve(queryTransform.getInput());
  }
  auto keyRope = key.getDefiningOp<RopeOp>(),
       queryRope = query.getDefiningOp<RopeOp>();
  if (bool(keyRope) != bool(queryRope) ||
      (keyRope && !sameRotation(keyRope, queryRope)))
    return op.emitOpError("expects keys and queries that are rotated alike, "
                          "but got different rotations");
  for (RopeOp rope : {keyRope, queryRope})
    if (rope && p.resolve(rope.getPositions()) != p.resolve(op.getPositions()))
      return rope.emitOpError("expects the positions of the append, but got "
                              "positions that are computed");

  FailureOr<CachePlan> cache =
      p.target().cache(op.getCache().getDefiningOp<KVOp>());
  if (failed(cache))
    return failure();
  RopeAppendSpec spec;
  spec.headSize = op.getCache().getType().getKeyWidth();
  spec.kvHeads = op.getCache().getType().getHeads();
  spec.heads = cast<RankedTensorType>(query.getType()).getShape()[1];
  spec.capacity = p.target().capacity();
  spec.kv = cache->format;
  spec.interleaved = keyRope && keyRope.getInterleaved();
  spec.tree = bool(*tree);
  spec.hadamard = keyTransform ? int64_t(keyTransform.getBlock()) : 0;
  spec.dims = keyRope ? int64_t(keyRope.getDims().value_or(spec.headSize)) : 0;

  Heads q = headsOf(p, queryRope ? queryRope.getInput() : query),
        k = headsOf(p, keyRope ? keyRope.getInput() : key),
        v = headsOf(p, op.getValue());
  for (const Heads &heads : {q, k, v})
    if (!p.view(heads.whole))
      return op.emitOpError("expects queries, keys and values that are computed "
                            "before it, but got one that comes later");
  spec.fused = q.whole == k.whole;
  SmallVector<Operand> operands{{"control", p.controlView()}};
  if (spec.fused) {
    bool ordered =
        v.whole == q.whole && q.begin == 0 && k.begin == q.end &&
        v.begin == k.end &&
        v.end == cast<RankedTensorType>(q.whole.getType()).getShape()[1];
    if (!ordered)
      return op.emitOpError("expects queries, keys and values one after "
                            "another in one product, but got other slices");
    operands.push_back({"qkv", p.view(q.whole)});
  } else {
    for (auto [role, heads, value] :
         {std::tuple("q", q, query), {"k", k, key}, {"v", v, op.getValue()}}) {
      if (heads.end - heads.begin !=
          cast<RankedTensorType>(heads.whole.getType()).getShape()[1])
        return op.emitOpError("expects '")
               << role << "' to be a whole product, but got a slice of "
               << value.getType();
      operands.push_back({role, p.view(heads.whole)});
    }
  }
  if (keyRope) {
    FailureOr<Value> table = tableOf(p, keyRope, spec);
    if (failed(table))
      return failure();
    operands.push_back({"table", *table, 2 * spec.dims * 4 * p.width()});
  }
  operands.push_back({"y", p.allocate(attended, p.width())});
  operands.push_back(
      {"keys", p.bufferView(cache->buffer, cache->keys, cache->sideBytes), 0});
  operands.push_back(
      {"values", p.bufferView(cache->buffer, cache->values, cache->sideBytes),
       0});
  return p.dispatch(op, RopeAppendSpec::kFamily, spec.toAttr(p.context()),
                    operands, p.width(), "rope, append");
}

/// Chooses tokens a workgroup and splits for a step of the program's width.
LogicalResult chooseSplits(ProgramLowering &p, AttentionSpec &spec,
                           Operation *op) {
  FailureOr<AttentionSchedule> schedule =
      AttentionSchedule::from(p.profile(), [&] { return op->emitOpError(); });
  if (failed(schedule))
    return failure();
  spec.split = AttentionSpec::splitFor(spec.capacity);
  // The nodes of a tree read different slots.
  spec.tokens = spec.tree ? 1 : spec.tokensFor(p.width(), p.profile());
  // Wide steps keep the device busy without workgroups for each split, and
  // need no memory for the results of splits then.
  int64_t groups = spec.heads / spec.groupHeads() *
                   ((p.width() + spec.tokens - 1) / spec.tokens);
  int64_t parts = spec.partsFor(p.width());
  spec.parts = groups < schedule->groups && parts > 1 ? parts : 0;
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
  const int64_t seen = spec.window ? std::min(spec.window + spec.sinks,
                                              spec.capacity)
                                   : spec.capacity;
  const int64_t tiles = llvm::divideCeilSigned(width, spec.tokens);
  const KvFormat format = KvFormat::named(spec.kv);
  const int64_t head =
      4 * (format.headWords(spec.headSize) + format.groups(spec.headSize));
  return {2 * width * spec.heads * spec.headSize * seen,
          2 * tiles * (spec.heads / spec.groupHeads()) * seen * head};
}

LogicalResult dispatchAttention(ProgramLowering &p, const AttentionSpec &spec,
                                Operation *op, SmallVector<Operand> operands) {
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
  if (failed(p.dispatch(op, AttentionSpec::kFamily, spec.toAttr(p.context()),
                        operands, p.width(), "attention", 0, counts.attention,
                        workOf(spec, p.width()))))
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
  spec.scale = op.getScale().convertToDouble();
  spec.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  spec.window = op.getWindow().value_or(0);
  spec.sinks = op.getSinks().value_or(0);
  spec.tree = tree ? kTreeStride : 0;
  if (failed(chooseSplits(p, spec, op)))
    return failure();
  SmallVector<Operand> operands = {
      {"q", p.view(op.getQuery())},
      {"control", p.controlView()},
      {"keys", p.bufferView(cache->buffer, cache->keys, cache->sideBytes), 0},
      {"values", p.bufferView(cache->buffer, cache->values, cache->sideBytes),
       0},
      {"y", p.allocate(op.getResult(), p.width())}};
  if (tree)
    operands.push_back({"tree", tree});
  return dispatchAttention(p, spec, op, operands);
}

LogicalResult lowerAttention(ProgramLowering &p, AttentionOp op) {
  if (op.getMask() != MaskKind::Causal || op.getBias() || op.getBlocks())
    return op.emitOpError(
        "expects a causal mask without bias and blocks, but got another");
  FailureOr<Value> tree = treeOf(p, op, op.getPositions(), /*base=*/{});
  return failed(tree) ? failure() : lowerAnyAttention(p, op, *tree);
}

LogicalResult lowerTreeAttention(ProgramLowering &p, TreeAttentionOp op) {
  if (op.getBias())
    return op.emitOpError("expects no bias, but got one");
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
      loweringOf<HadamardOp, lowerHadamard>(),
      loweringOf<KVAppendOp, lowerAppend>(),
      loweringOf<KVOp, lowerHandle>(),
      loweringOf<RopeOp, lowerRope>(),
      loweringOf<TreeAttentionOp, lowerTreeAttention>(),
      loweringOf<SliceOp, lowerSlice>(),
  };
  return rows;
}

} // namespace mlir::llm
