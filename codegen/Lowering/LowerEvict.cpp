// Room in a full context: what stays of each cache moves up, and the history
// with it.
#include "codegen/Kernels/KvEvict.h"
#include "codegen/Kernels/RopeAppend.h"
#include "codegen/Lowering/OpLowerings.h"
#include "codegen/Lowering/RopeFrequencies.h"

namespace mlir::llm {
namespace {

/// The arguments of @evict.
enum : unsigned { kSinks, kDrop };

bool isArgument(ProgramLowering &p, Value value, unsigned number) {
  auto argument = value ? dyn_cast<BlockArgument>(p.resolve(value))
                        : BlockArgument();
  return argument && argument.getArgNumber() == number;
}

bool sameRotation(KVEvictOp a, KVEvictOp b) {
  return a.getFrequencies() == b.getFrequencies() &&
         a->getAttrDictionary() == b->getAttrDictionary();
}

/// The evictions of the caches of one symbol, by index; null where there is
/// none.
SmallVector<KVEvictOp> evictionsOf(ProgramLowering &p, KVOp handle) {
  SmallVector<KVEvictOp> list;
  for (const FlatOp &entry : p.function().ops())
    if (auto other = dyn_cast<KVEvictOp>(entry.op)) {
      auto its = other.getCache().getDefiningOp<KVOp>();
      if (its.getCacheAttr() != handle.getCacheAttr())
        continue;
      const auto index = size_t(its.getIndex());
      list.resize(std::max(list.size(), index + 1));
      list[index] = other;
    }
  return list;
}

/// Layers from `index` on whose keys turn alike and that one binding spans; 0:
/// they go with a layer before.
int64_t layersFrom(ProgramLowering &p, const CachePlan &cache,
                   ArrayRef<KVEvictOp> list, size_t index) {
  const int64_t most = p.layersWithin(cache);
  auto goesOn = [&](size_t i) {
    return i < list.size() && list[i] && list[i - 1] &&
           sameRotation(list[i], list[i - 1]);
  };
  size_t first = index, end = index + 1;
  while (first > 0 && goesOn(first))
    --first;
  while (goesOn(end))
    ++end;
  if (int64_t(index - first) % most != 0)
    return 0;
  return std::min<int64_t>(most, int64_t(end - index));
}

LogicalResult moveHistory(ProgramLowering &p, KVEvictOp op) {
  Value &moved = p.remembered(p.ops().getStringAttr("evict history"));
  if (moved)
    return success();
  moved = p.controlView();
  KvEvictSpec spec;
  spec.kvHeads = spec.headSize = 1;
  spec.capacity = p.target().capacity();
  spec.kv = "f32"; // any word
  return p.dispatch(op, KvEvictSpec::kFamily, spec.toAttr(p.context()),
                    {{"control", p.controlView()},
                     {"cells", p.historyView(), 0}},
                    1, "evict, history");
}

LogicalResult lowerEvict(ProgramLowering &p, KVEvictOp op) {
  if (!isArgument(p, op.getSinks(), kSinks) ||
      !isArgument(p, op.getDrop(), kDrop))
    return op.emitOpError("expects the sinks and the slots to drop that the "
                          "function is given, but got others");
  if (failed(moveHistory(p, op)))
    return failure();
  auto handle = op.getCache().getDefiningOp<KVOp>();
  FailureOr<CachePlan> cache = p.target().cache(handle);
  if (failed(cache))
    return failure();
  if (cache->parts)
    return op.emitOpError("expects keys of a layer within the ")
           << p.profile().limits.storageRange
           << " bytes that a binding spans on target '" << p.profile().name
           << "' to make room in them, but they take " << cache->sideBytes
           << "; compile with a shorter --context, with fewer bits in the cache "
              "(--kv=8), or for other targets";
  const int64_t layers = layersFrom(p, *cache, evictionsOf(p, handle),
                                    size_t(handle.getIndex()));
  if (layers == 0)
    return success();
  const uint64_t bytes =
      cache->sideBytes + uint64_t(layers - 1) * cache->layerBytes;
  KvEvictSpec spec;
  static_cast<CacheLayers &>(spec) =
      p.layersOf(*cache, op.getCache().getType(), layers);
  auto dispatch = [&](const KvEvictSpec &which, uint64_t side, Value table,
                      StringRef what) {
    SmallVector<Operand> operands{
        {"control", p.controlView()},
        {"cells", p.bufferView(cache->buffer, side, bytes), 0}};
    if (table)
      operands.push_back({"table", table, 0});
    return p.dispatch(op, KvEvictSpec::kFamily, which.toAttr(p.context()),
                      operands, 1, what, /*macs=*/0, /*counts=*/{},
                      {0, 2 * int64_t(cache->sideBytes) * layers});
  };
  if (failed(dispatch(spec, cache->values, {}, "evict, values")))
    return failure();
  if (!op.turns())
    return dispatch(spec, cache->keys, {}, "evict, keys");
  spec.dims = op.getTurnedDims();
  spec.interleaved = op.getInterleaved();
  spec.hadamard = int64_t(op.getHadamard().value_or(0));
  FailureOr<SmallVector<double>> frequencies =
      frequenciesOf(op, spec.dims, /*sets=*/1);
  if (failed(frequencies))
    return failure();
  // That of the appends, where these have an amplitude of 1.
  std::vector<float> numbers = ropeTable(*frequencies, spec.capacity);
  auto numbersType =
      RankedTensorType::get({int64_t(numbers.size())}, p.ops().getF32Type());
  Value table = p.constant(
      "rope.table", DenseElementsAttr::get(numbersType, ArrayRef(numbers)));
  return dispatch(spec, cache->keys, table, "evict, keys");
}

} // namespace

ArrayRef<OpLoweringRow> evictLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<KVEvictOp, lowerEvict>(),
  };
  return rows;
}

} // namespace mlir::llm
