// Key-value caches and attention over them.
#include "dialects/LLM/IntegerAttention.h"
#include "lib/Reference/Codec.h"
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Attention.h"
#include "lib/Reference/Math/Rows.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

template <typename F> static LogicalResult evaluateKV(const OpContext<F> &context) {
  auto op = cast<KVOp>(context.op);
  context.frame.handles[op.getHandle()] =
      &context.frame.state->get(op.getCache(), op.getIndex(), cast<KVType>(op.getHandle().getType()));
  return success();
}

/// What a cache of element type `type` holds of heads of `E` numbers.
template <typename F>
static FailureOr<std::vector<F>> asStored(const OpContext<F> &context, ArrayRef<F> rows, int64_t E, Type type) {
  std::vector<F> numbers(rows.begin(), rows.end());
  if (auto element = dyn_cast<QuantizedType>(type)) {
    if (failed(roundToCodes<F>(context.workers(), element, numbers.data(), int64_t(rows.size()) / E, E, 1)))
      return context.op->emitOpError("expects a type that numbers can be rounded to, but got ") << element, failure();
    return numbers;
  }
  if (context.interpreter.options.roundCaches && !type.isF32()) {
    const ScaleType format = type.isF16() ? ScaleType::f16() : ScaleType::bf16();
    for (F &number : numbers)
      number = F(roundScale(format, double(number)));
  }
  return numbers;
}

template <typename F> static LogicalResult evaluateKVAppend(const OpContext<F> &context) {
  auto op = cast<KVAppendOp>(context.op);
  KVSlots<F> &cache = context.cache(op.getCache());
  const ArrayRef<int32_t> positions = context.ints(op.getPositions());
  SmallVector<int32_t> slots(op.getSlots() ? context.ints(op.getSlots()) : positions);
  if (op.getBase())
    std::iota(slots.begin(), slots.end(), context.ints(op.getBase())[0]);
  const int64_t E = cache.type.getKeyWidth(), EV = cache.type.getValueWidth();
  FailureOr<std::vector<F>> keys = asStored(context, context.floats(op.getKey()), E, cache.type.getKeyType());
  FailureOr<std::vector<F>> values = std::vector<F>();
  if (op.getValue())
    values = asStored(context, context.floats(op.getValue()), EV, cache.type.getValueType());
  if (failed(keys) || failed(values))
    return failure();
  for (auto [t, slot] : llvm::enumerate(slots)) {
    if (slot < 0 || slot >= cache.type.getCapacity())
      return op.emitOpError("expects slots from 0 to ") << cache.type.getCapacity() - 1 << ", but got " << slot;
    cache.write(slot, positions[t], keys->data() + t * cache.keyRow(),
                op.getValue() ? values->data() + t * cache.valueRow() : nullptr);
  }
  return success();
}

/// The part of visibility that attention and tree attention share: the window, and its sinks.
template <typename Op> static bool inWindow(Op op, int64_t query, int64_t key) {
  if (key < int64_t(op.getFirst().value_or(0)))
    return false;
  return !op.getWindow() || query - key < int64_t(*op.getWindow()) || key < int64_t(op.getSinks().value_or(0));
}

static bool inBlocks(BlockMaskAttr blocks, int64_t query, int64_t key) {
  const int64_t i = query / blocks.getSize(), j = key / blocks.getSize();
  return i - j < blocks.getLocal() || j < blocks.getFirst() ||
         (blocks.getStride() != 0 && (i - j) % blocks.getStride() == 0);
}

template <typename Op> static bool inBlocks(Op op, int64_t query, int64_t key) {
  return !op.getBlocks() || inBlocks(*op.getBlocks(), query, key);
}

static bool sees(AttentionOp op, int64_t query, int64_t key) {
  if (!inBlocks(op, query, key))
    return false;
  switch (op.getMask()) {
  case MaskKind::Causal:
    return key <= query && inWindow(op, query, key);
  case MaskKind::Full:
    return inWindow(op, query, key);
  case MaskKind::Chunked:
    return key <= query && key >= int64_t(op.getFirst().value_or(0)) && key / int64_t(*op.getWindow()) == query / int64_t(*op.getWindow());
  }
  return false;
}

/// Both kinds of attention; `visible` is [T, S].
template <typename F, typename Op>
static LogicalResult attend(const OpContext<F> &context, Op op, const KVSlots<F> &cache, ArrayRef<uint8_t> visible) {
  const Tensor &query = context.get(op.getQuery());
  AttentionInputs<F> in;
  in.T = size_t(query.rows()), in.H = size_t(query.shape()[1]), in.E = size_t(query.shape()[2]);
  in.G = size_t(cache.type.getHeads()), in.EV = size_t(cache.type.getValueWidth()), in.S = size_t(cache.slots());
  const bool prefix = cache.type.isValuePrefix();
  in.queries = query.as<F>().data(), in.keys = cache.keys.data();
  in.values = prefix ? cache.keys.data() : cache.values.data();
  in.valueStride = prefix ? in.E : in.EV;
  in.visible = visible.data();
  in.scale = op.getScale().convertToDouble();
  in.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  in.slopes = context.optional(op.getBias());
  in.queryPositions = context.ints(op.getPositions()).data();
  in.keyPositions = cache.positions.data();
  std::vector<F> rounded;
  if (op.getIntegers()) {
    rounded.assign(in.queries, in.queries + in.T * in.H * in.E);
    if (failed(roundToCodes<F>(context.workers(), integerHead(op.getContext()), rounded.data(), int64_t(in.T * in.H),
                               int64_t(in.E), 1)))
      return failure();
    in.queries = rounded.data();
    in.weightBlock = size_t(kWeightBlock);
  }
  attention<F>(context.workers(), in, context.make(op.getResult(), query.rows()));
  return success();
}

template <typename F> static LogicalResult evaluateAttention(const OpContext<F> &context) {
  auto op = cast<AttentionOp>(context.op);
  const KVSlots<F> &cache = context.cache(op.getCache());
  const ArrayRef<int32_t> positions = context.ints(op.getPositions());
  std::vector<uint8_t> visible;
  visible.reserve(positions.size() * cache.positions.size());
  for (int32_t query : positions)
    for (int32_t key : cache.positions)
      visible.push_back(key >= 0 && sees(op, query, key));
  return attend(context, op, cache, visible);
}

template <typename F> static LogicalResult evaluateTreeAttention(const OpContext<F> &context) {
  auto op = cast<TreeAttentionOp>(context.op);
  const KVSlots<F> &cache = context.cache(op.getCache());
  const ArrayRef<int32_t> positions = context.ints(op.getPositions()), mask = context.ints(op.getMask());
  const int64_t base = context.ints(op.getBase())[0];
  std::vector<uint8_t> visible(positions.size() * size_t(cache.slots()));
  for (auto [t, query] : llvm::enumerate(positions))
    for (int64_t slot = 0; slot < cache.slots(); ++slot) {
      const int32_t key = cache.positions[size_t(slot)];
      const int64_t node = slot - base;
      const bool candidate = node < 0 || (node < 64 && (uint32_t(mask[2 * t + size_t(node / 32)]) >> (node % 32) & 1));
      visible[t * size_t(cache.slots()) + size_t(slot)] = key >= 0 && candidate && inWindow(op, query, key) && inBlocks(op, query, key);
    }
  return attend(context, op, cache, visible);
}

template <typename F> static LogicalResult evaluateKVCompact(const OpContext<F> &context) {
  auto op = cast<KVCompactOp>(context.op);
  KVSlots<F> &cache = context.cache(op.getCache());
  const ArrayRef<int32_t> accepted = context.ints(op.getAccepted());
  const int64_t base = context.ints(op.getBase())[0], count = context.ints(op.getCount())[0];
  if (base < 0 || count < 0 || count > int64_t(accepted.size()))
    return op.emitOpError("expects a base from 0 and a count from 0 to ")
           << accepted.size() << ", but got " << base << " and " << count;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = base + accepted[size_t(i)];
    if (accepted[size_t(i)] < i || from >= cache.slots() || (i != 0 && accepted[size_t(i)] <= accepted[size_t(i - 1)]))
      return op.emitOpError("expects ascending nodes of the tree, but got ")
             << accepted[size_t(i)] << " in place " << i;
    cache.move(from, base + i);
  }
  if (cache.slots() > base + count)
    cache.resize(base + count); // the rejected nodes are gone
  return success();
}

template <typename F> static LogicalResult evaluatePreviousRows(const OpContext<F> &context) {
  auto op = cast<PreviousRowsOp>(context.op);
  KVSlots<F> &cache = context.cache(op.getCache());
  const Tensor &input = context.get(op.getInput());
  const ArrayRef<int32_t> positions = context.ints(op.getPositions());
  const size_t D = size_t(input.width()), T = positions.size();
  const F *rows = input.as<F>().data();
  F *result = context.make(op.getResult(), input.rows());
  std::fill_n(result, T * D, F(0));
  for (size_t t = 0; t < T; ++t) {
    int64_t before = int64_t(t) - 1;
    if (op.getParents())
      before = context.ints(op.getParents())[t];
    if (before >= int64_t(t) || positions[t] >= cache.type.getCapacity())
      return op.emitOpError("expects parents before their nodes, and positions within the ")
             << cache.type.getCapacity() << " slots of the cache, but got parent " << before << " of row " << t
             << " at position " << positions[t];
    // Rows need not follow one another where there is no tree.
    const bool inStep = before >= 0 && (op.getParents() || positions[size_t(before)] + 1 == positions[t]);
    if (const F *row = inStep ? rows + before * int64_t(D) : cache.rememberedAt(positions[t] - 1))
      std::copy_n(row, D, result + t * D);
  }
  for (size_t t = 0; t < T; ++t)
    cache.remember(op.getBase() ? context.ints(op.getBase())[0] + int64_t(t) : positions[t], rows + t * D, D);
  return success();
}

/// Turns keys, as they are stored, `back` positions back.
template <typename F>
static FailureOr<std::vector<F>> turnedBack(const OpContext<F> &context, KVEvictOp op, ArrayRef<F> keys,
                                            int32_t back) {
  const KVType type = cast<KVType>(op.getCache().getType());
  const auto E = size_t(type.getKeyWidth()), H = size_t(type.getHeads()), heads = keys.size() / E;
  const auto pairs = size_t(op.getTurnedDims() / 2);
  const double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
  std::vector<double> frequencies;
  if (op.getFrequencies())
    for (F frequency : context.floats(op.getFrequencies()).take_front(pairs))
      frequencies.push_back(double(frequency) * scale);
  else
    for (size_t i = 0; i < pairs; ++i)
      frequencies.push_back(scale * std::pow(op.getBase()->convertToDouble(), -double(i) / double(pairs)));
  std::vector<F> plain(keys.begin(), keys.end()), turned(keys.size());
  const auto block = size_t(op.getHadamard().value_or(0));
  if (block)
    hadamard<F>(context.workers(), keys.data(), plain.data(), heads, E, block, {}, /*inverse=*/true);
  const std::vector<int32_t> positions(heads / H, -back);
  rope<F>(context.workers(), plain.data(), turned.data(), positions, H, E, frequencies, op.getInterleaved(), 1);
  if (block) {
    std::swap(plain, turned);
    hadamard<F>(context.workers(), plain.data(), turned.data(), heads, E, block, {});
  }
  return asStored<F>(context, turned, int64_t(E), type.getKeyType());
}

/// The slots behind the sinks move up by `drop`, positions with them.
template <typename F> static LogicalResult evictBehindSinks(const OpContext<F> &context, KVEvictOp op) {
  KVSlots<F> &cache = context.cache(op.getCache());
  const int64_t sinks = context.ints(op.getSinks())[0], drop = context.ints(op.getDrop())[0], slots = cache.slots();
  if (sinks < 0 || drop < 0 || sinks + drop > slots)
    return op.emitOpError("expects sinks and slots to drop that the cache holds, ")
           << slots << " at most, but got " << sinks << " and " << drop;
  if (op.turns()) {
    const auto first = size_t(sinks + drop) * cache.keyRow();
    FailureOr<std::vector<F>> turned =
        turnedBack<F>(context, op, ArrayRef<F>(cache.keys).drop_front(first), int32_t(drop));
    if (failed(turned))
      return failure();
    llvm::copy(*turned, cache.keys.begin() + int64_t(first));
  }
  for (int64_t slot = sinks + drop; slot < slots; ++slot) {
    cache.move(slot, slot - drop);
    cache.positions[size_t(slot - drop)] -= int32_t(drop);
  }
  cache.resize(slots - drop);
  return success();
}

template <typename F> static LogicalResult evaluateKVEvict(const OpContext<F> &context) {
  auto op = cast<KVEvictOp>(context.op);
  if (!op.getKeep())
    return evictBehindSinks(context, op);
  KVSlots<F> &cache = context.cache(op.getCache());
  const ArrayRef<int32_t> keep = context.ints(op.getKeep());
  for (auto [to, from] : llvm::enumerate(keep)) {
    if (from < int64_t(to) || from >= cache.slots() || (to != 0 && from <= keep[to - 1]))
      return op.emitOpError("expects ascending slots below ") << cache.slots() << ", but got " << from;
    cache.move(from, int64_t(to));
  }
  cache.resize(int64_t(keep.size()));
  return success();
}

template <typename F> void reference::addStateOps(OpTable<F> &table) {
  table[TypeID::get<KVOp>()] = {evaluateKV<F>};
  table[TypeID::get<KVAppendOp>()] = {evaluateKVAppend<F>};
  table[TypeID::get<AttentionOp>()] = {evaluateAttention<F>};
  table[TypeID::get<TreeAttentionOp>()] = {evaluateTreeAttention<F>};
  table[TypeID::get<KVCompactOp>()] = {evaluateKVCompact<F>};
  table[TypeID::get<KVEvictOp>()] = {evaluateKVEvict<F>};
  table[TypeID::get<PreviousRowsOp>()] = {evaluatePreviousRows<F>};
}
template void reference::addStateOps<float>(OpTable<float> &);
template void reference::addStateOps<double>(OpTable<double> &);
