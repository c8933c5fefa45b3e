// Rotation and append. One kernel rotates queries and keys and appends, so
// `llm.rope` and the slices of a fused QKV product are looked through, and the
// append does their work; or the product does it, where it can.
#include "codegen/Kernels/AttentionSchedule.h"
#include "codegen/Kernels/RopeAppend.h"
#include "codegen/Lowering/OpLowerings.h"
#include "codegen/Lowering/RopeFrequencies.h"

namespace mlir::llm {
namespace {

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
LogicalResult lowerSlice(ProgramLowering &p, SliceOp op) {
  return defer(p, op);
}

/// Rotations turn by the same angles.
bool sameRotation(RopeOp a, RopeOp b) {
  return a.getFrequencies() == b.getFrequencies() &&
         a->getAttrDictionary() == b->getAttrDictionary();
}

/// The rotation tables of `rope` as a tensor of the module.
FailureOr<Value> tableOf(ProgramLowering &p, RopeOp rope,
                         const RopeAppendSpec &spec) {
  FailureOr<SmallVector<double>> frequencies =
      frequenciesOf(rope, spec.dims, spec.longFrom ? 2 : 1);
  if (failed(frequencies))
    return failure();
  double amplitude =
      rope.getAmplitude() ? rope.getAmplitude()->convertToDouble() : 1.0;
  const ArrayRef<double> all(*frequencies);
  const auto pairs = size_t(spec.dims / 2);
  std::vector<float> table =
      ropeTable(all.take_front(pairs), spec.capacity, amplitude);
  if (spec.longFrom) {
    std::vector<float> further =
        ropeTable(all.drop_front(pairs), spec.capacity, amplitude);
    table.insert(table.end(), further.begin(), further.end());
  }
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

/// What an append does, and to which numbers.
struct Append {
  RopeAppendSpec spec;
  Heads q, k, v;
  Value query, key; ///< before rotation
  Value attended;   ///< what the attention reads
  RopeOp rope;      ///< null: none
  CachePlan cache;
  /// Queries, keys and values lie one after another in one product.
  bool ordered() const {
    return v.whole == q.whole && q.begin == 0 && k.begin == q.end &&
           v.begin == k.end &&
           v.end == cast<RankedTensorType>(q.whole.getType()).getShape()[1];
  }
};

FailureOr<Append> readAppend(ProgramLowering &p, KVAppendOp op) {
  Append append;
  FailureOr<Value> tree = treeOf(p, op, op.getPositions(), op.getBase());
  if (failed(tree))
    return failure();
  if (op.getSlots())
    return op.emitOpError("expects slots that are the positions, or a base, "
                          "but got slots of their own");
  Value query = p.function().queryOf(op);
  // What a draft attends to is appended by the model, without queries.
  const bool filled =
      llvm::any_of(op.getCache().getUsers(), llvm::IsaPred<PreviousRowsOp>);
  if ((!query && !filled) || !op.getValue())
    return op.emitOpError("expects an attention over the same cache and values "
                          "of their own, but got none");
  append.attended = query;
  Value key = p.resolve(op.getKey());
  if (!query)
    query = key;
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
  append.query = query, append.key = key, append.rope = keyRope;

  FailureOr<CachePlan> cache =
      p.target().cache(op.getCache().getDefiningOp<KVOp>());
  if (failed(cache))
    return failure();
  append.cache = *cache;
  RopeAppendSpec &spec = append.spec;
  spec.headSize = op.getCache().getType().getKeyWidth();
  spec.kvHeads = op.getCache().getType().getHeads();
  if (append.attended)
    spec.heads = cast<RankedTensorType>(query.getType()).getShape()[1];
  spec.capacity = p.target().capacity();
  spec.kv = cache->format;
  spec.cache = cache->parts;
  spec.interleaved = keyRope && keyRope.getInterleaved();
  spec.tree = bool(*tree);
  spec.hadamard = keyTransform ? int64_t(keyTransform.getBlock()) : 0;
  spec.dims = keyRope ? int64_t(keyRope.getDims().value_or(spec.headSize)) : 0;
  // A context that ends before the second set needs the first alone.
  if (keyRope && keyRope.getLongFrom().value_or(spec.capacity) < spec.capacity)
    spec.longFrom = int64_t(*keyRope.getLongFrom());
  spec.valueSize = shorterValue(op.getCache().getType());
  append.q = headsOf(p, queryRope ? queryRope.getInput() : query);
  append.k = headsOf(p, keyRope ? keyRope.getInput() : key);
  append.v = headsOf(p, op.getValue());
  spec.fused = append.attended && append.q.whole == append.k.whole;
  return append;
}

/// Where the numbers come from, for a dispatch of its own.
LogicalResult addInputs(ProgramLowering &p, KVAppendOp op, const Append &append,
                        SmallVector<Operand> &operands) {
  for (const Heads &heads : {append.q, append.k, append.v})
    if (!p.view(heads.whole))
      return op.emitOpError("expects queries, keys and values that are computed "
                            "before it, but got one that comes later");
  if (append.spec.fused) {
    if (!append.ordered())
      return op.emitOpError("expects queries, keys and values one after "
                            "another in one product, but got other slices");
    operands.push_back({"qkv", p.view(append.q.whole)});
    return success();
  }
  for (auto [role, heads, value] : {std::tuple("q", append.q, append.query),
                                    {"k", append.k, append.key},
                                    {"v", append.v, Value(op.getValue())}}) {
    if (!append.attended && StringRef(role) == "q")
      continue;
    if (heads.end - heads.begin !=
        cast<RankedTensorType>(heads.whole.getType()).getShape()[1])
      return op.emitOpError("expects '")
             << role << "' to be a whole product, but got a slice of "
             << value.getType();
    operands.push_back({role, p.view(heads.whole)});
  }
  return success();
}

LogicalResult lowerAppend(ProgramLowering &p, KVAppendOp op) {
  FailureOr<Append> append = readAppend(p, op);
  if (failed(append))
    return failure();
  const RopeAppendSpec &spec = append->spec;
  auto product = append->q.whole.getDefiningOp<LinearOp>();
  FailureOr<KVAppendOp> own =
      product ? appendOf(p, product) : FailureOr<KVAppendOp>(KVAppendOp());
  if (failed(own))
    return failure();
  SmallVector<Operand> operands{{"control", p.controlView()}};
  if (!*own && failed(addInputs(p, op, *append, operands)))
    return failure();
  if (append->rope) {
    FailureOr<Value> table = tableOf(p, append->rope, spec);
    if (failed(table))
      return failure();
    operands.push_back({"table", *table, 2 * spec.dims * 4 * p.width()});
  }
  if (append->attended)
    operands.push_back({"y", p.allocate(append->attended, p.width())});
  operands.append(p.cacheOperands(append->cache));
  if (*own)
    return lowerAppendingLinear(p, product, spec, operands);
  return p.dispatchOnCache(op, RopeAppendSpec::kFamily,
                           spec.toAttr(p.context()), append->cache, operands,
                           p.width(), "rope, append");
}

} // namespace

int64_t shorterValue(KVType type) {
  return type.getValueWidth() == type.getKeyWidth() ? 0 : type.getValueWidth();
}

FailureOr<KVAppendOp> appendOf(ProgramLowering &p, LinearOp op) {
  FailureOr<AttentionSchedule> schedule =
      AttentionSchedule::from(p.profile(), [&] { return op->emitOpError(); });
  if (failed(schedule))
    return failure();
  if (!schedule->append)
    return KVAppendOp();
  // Slices of it, of which one is the values of an append.
  KVAppendOp found;
  for (Operation *user : op.getResult().getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice)
      return KVAppendOp();
    for (Operation *next : slice.getResult().getUsers())
      if (auto append = dyn_cast<KVAppendOp>(next)) {
        if (found && found != append)
          return KVAppendOp();
        found = append;
      }
  }
  if (!found || !p.isNeeded(found))
    return KVAppendOp();
  FailureOr<Append> append = readAppend(p, found);
  if (failed(append))
    return failure();
  // A product writes to a cache that one binding spans.
  if (append->cache.parts)
    return KVAppendOp();
  bool whole = append->q.whole == op.getResult() && append->spec.fused &&
               append->ordered();
  return whole && canAppend(p, op, append->spec) ? found : KVAppendOp();
}

ArrayRef<OpLoweringRow> appendLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<KVAppendOp, lowerAppend>(),
      loweringOf<RopeOp, lowerRope>(),
      loweringOf<SliceOp, lowerSlice>(),
  };
  return rows;
}

} // namespace mlir::llm
