#include "transforms/Prune/Narrow.h"

#include "lib/Weights/WeightExpr.h"
#include "lib/Weights/WeightTypes.h"
#include "transforms/Prune/Rewrite.h"

#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

/// The place right behind what makes a weight, where all its users can see what is made of it.
static OpBuilder behind(Value value) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  return builder;
}

static bool isRun(ArrayRef<int64_t> indices) {
  return !indices.empty() && indices.back() - indices.front() + 1 == int64_t(indices.size()) && llvm::is_sorted(indices);
}

/// Whether the indices are whole blocks, each in its own order.
static bool areBlocks(ArrayRef<int64_t> indices, int64_t block) {
  for (auto [i, index] : llvm::enumerate(indices))
    if (index % block != int64_t(i) % block || (index % block && index != indices[i - 1] + 1))
      return false;
  return int64_t(indices.size()) % block == 0;
}

FailureOr<Value> Narrower::cutColumns(const ChannelUse &use, ArrayRef<int64_t> indices) {
  const Value weight = use.operand->get();
  const auto type = cast<RankedTensorType>(weight.getType());
  OpBuilder builder = behind(weight);
  const std::string name = weightName(weight) + ".pruned";
  const auto format = storageFormatOf(type);
  const int64_t block = format ? quant::info(*format).blockElements : 0;
  if (block && areBlocks(indices, block)) {
    FailureOr<std::unique_ptr<WeightExpr>> expr = openWeightExpr(weight, store);
    if (failed(expr))
      return failure();
    if ((*expr)->format() == *format) {
      SmallVector<int64_t> shape(type.getShape());
      shape.back() = int64_t(indices.size());
      const size_t bytes = quant::info(*format).blockBytes;
      return spill.add(builder, weight.getLoc(), name,
                       RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
                       [&](WeightSpill::Write write) -> ::llvm::Error {
                         std::vector<std::byte> buffer, row(indices.size() / size_t(block) * bytes);
                         for (int64_t n = 0; n < (*expr)->rows(); ++n) {
                           const auto old = (*expr)->read(n, 1, buffer);
                           for (size_t i = 0; i < indices.size(); i += size_t(block))
                             std::copy_n(old.begin() + ptrdiff_t(size_t(indices[i] / block) * bytes), bytes,
                                         row.begin() + ptrdiff_t(i / size_t(block) * bytes));
                           if (::llvm::Error error = write(row))
                             return error;
                         }
                         return ::llvm::Error::success();
                       });
    }
  }
  FailureOr<Matrix> numbers = readMatrix(weight, store, use.owner());
  if (failed(numbers))
    return failure();
  return writeLike(builder, weight.getLoc(), spill, name, type, chooseColumns(*numbers, indices));
}

FailureOr<Value> Narrower::indexOf(const ChannelGroup &group, StringRef name, ArrayRef<int64_t> indices) {
  LayerOp layer = group.layer();
  Block *block = layer ? layer.getBodyBlock()
                       : &group.uses.front().owner()->getParentOfType<func::FuncOp>().getBody().front();
  Value &index = indexes[{block, std::vector<int64_t>(indices.begin(), indices.end())}];
  if (index)
    return index;
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  FailureOr<Value> made = writeIndex(builder, group.uses.front().owner()->getLoc(), spill, name, indices);
  if (succeeded(made))
    index = *made;
  return made;
}

FailureOr<Value> Narrower::cut(const ChannelGroup &group, const ChannelUse &use, ArrayRef<int64_t> indices) {
  const Value weight = use.operand->get();
  const auto type = cast<RankedTensorType>(weight.getType());
  if (use.axis == type.getRank() - 1 && isa<QuantizedType>(type.getElementType()))
    return cutColumns(use, indices);
  OpBuilder builder = behind(weight);
  if (isRun(indices))
    return SliceOp::create(builder, weight.getLoc(), weight, indices.front(), indices.back() + 1, use.axis).getResult();
  FailureOr<Value> index = indexOf(group, weightName(weight) + ".channels", indices);
  if (failed(index))
    return failure();
  return GatherOp::create(builder, weight.getLoc(), weight, *index, use.axis).getResult();
}

FailureOr<Value> Narrower::refit(const ChannelUse &use, ArrayRef<int64_t> indices, ArrayRef<float> moments) {
  const Value weight = use.operand->get();
  FailureOr<Matrix> numbers = readMatrix(weight, store, use.owner());
  if (failed(numbers))
    return failure();
  FailureOr<Matrix> fitted = refitColumns(*numbers, moments, indices, ridge);
  if (failed(fitted))
    return use.owner()->emitOpError("expects inputs that can be fitted, but their second moments cannot be inverted"),
           failure();
  if (measures)
    lost.add(lostShare(*numbers, moments, indices, chooseColumns(*numbers, indices)),
             lostShare(*numbers, moments, indices, *fitted));
  OpBuilder builder = behind(weight);
  return writeLike(builder, weight.getLoc(), spill, weightName(weight) + ".pruned",
                   cast<RankedTensorType>(weight.getType()), *fitted);
}

LogicalResult Narrower::prepare(ChannelGroup &group, const ChannelUse &use, ArrayRef<int64_t> kept,
                                ArrayRef<float> moments) {
  FailureOr<Value> value = refit(use, use.indices(kept, group.size), moments);
  if (succeeded(value))
    prepared[use.operand] = *value;
  return LogicalResult(value);
}

/// Frequencies of the pairs that are left, written out: what a base gives depends on the width.
LogicalResult Narrower::turn(const ChannelGroup &group, RopeOp rope, ArrayRef<int64_t> kept) {
  const int64_t half = rope.getRotatedDims() / 2;
  const bool interleaved = rope.getInterleaved();
  SmallVector<int64_t> pairs, expected;
  for (int64_t c : kept)
    if (c < 2 * half && (interleaved ? c % 2 == 0 : c < half))
      pairs.push_back(interleaved ? c / 2 : c);
  for (int64_t pair : pairs)
    interleaved ? expected.append({2 * pair, 2 * pair + 1}) : expected.push_back(pair);
  if (!interleaved)
    for (int64_t pair : pairs)
      expected.push_back(pair + half);
  const bool whole = kept.size() >= expected.size() && kept.take_front(expected.size()) == ArrayRef(expected) &&
                     llvm::all_of(kept.drop_front(expected.size()), [&](int64_t c) { return c >= 2 * half; });
  if (!whole || pairs.empty())
    return rope.emitOpError("turns pairs of channels, of which at least one has to stay, and each as a whole");
  // One weight for all rotations of the group: lowering takes equal ones for the same. In f64, as a base is evaluated.
  Value &few = frequencies[{&group, rope.getFrequencies().getAsOpaquePointer()}];
  if (!few) {
    SmallVector<double> numbers;
    SmallVector<int64_t> shape{int64_t(pairs.size())};
    if (Value all = rope.getFrequencies()) {
      FailureOr<Matrix> matrix = readMatrix(all, store, rope);
      if (failed(matrix))
        return failure();
      for (int64_t n = 0; n < matrix->N; ++n)
        for (int64_t pair : pairs)
          numbers.push_back(matrix->row(n)[size_t(pair)]);
      if (matrix->N > 1)
        shape.insert(shape.begin(), matrix->N);
    } else {
      for (int64_t pair : pairs)
        numbers.push_back(std::pow(rope.getBase()->convertToDouble(), -double(pair) / double(half)));
    }
    OpBuilder builder = OpBuilder::atBlockBegin(rope->getBlock());
    auto type = RankedTensorType::get(shape, builder.getF64Type());
    few = WeightOp::create(builder, rope.getLoc(), DenseElementsAttr::get(type, ArrayRef<double>(numbers))).getResult();
  }
  rope.getFrequenciesMutable().assign(few);
  rope.removeBaseAttr();
  rope.setDims(int64_t(2 * pairs.size()));
  return success();
}

/// The width that a norm divided by before any of it went.
static void keepCount(Operation *norm) {
  auto set = [](auto op) {
    if (op.getCount())
      return;
    const auto shape = cast<ShapedType>(op.getInput().getType()).getShape().drop_front();
    int64_t count = shape.back();
    if constexpr (requires { op.getGamma(); })
      if (op.getGamma() && cast<ShapedType>(op.getGamma().getType()).getDimSize(0) != count)
        count = ShapedType::getNumElements(shape);
    op.setCount(count);
  };
  if (auto rms = dyn_cast<RmsNormOp>(norm))
    set(rms);
  else if (auto layer = dyn_cast<LayerNormOp>(norm))
    set(layer);
  else
    set(cast<RmsScaleOp>(norm));
}

LogicalResult Narrower::narrow(ChannelGroup &group, ArrayRef<int64_t> kept, const InputMoments &moments) {
  if (!group.fixed.empty())
    return group.values.front().first.getDefiningOp()->emitOpError("expects channels that can go, but ")
           << group.fixed;
  if (int64_t(kept.size()) == group.size && isRun(kept))
    return success();
  for (Operation *norm : group.norms)
    keepCount(norm);
  for (Operation *rope : group.rotations)
    if (failed(turn(group, cast<RopeOp>(rope), kept)))
      return failure();

  // A weight that is read twice along the same axis (a tied embedding) is cut once, and not fitted to one of its readers.
  llvm::DenseMap<std::pair<Value, int64_t>, unsigned> readers;
  for (const ChannelUse &use : group.uses)
    ++readers[{use.operand->get(), use.axis}];
  std::map<std::pair<void *, int64_t>, Value> done;
  llvm::SetVector<Value> old;
  for (const ChannelUse &use : group.uses) {
    const Value before = use.operand->get();
    const auto moment = moments.find(use.owner());
    FailureOr<Value> after;
    if (auto ready = prepared.find(use.operand); ready != prepared.end()) {
      after = ready->second;
      prepared.erase(ready);
    } else if (moment != moments.end() && use.isColumns() && readers[{before, use.axis}] == 1 &&
               cast<ShapedType>(before.getType()).getRank() == 2) {
      after = refit(use, use.indices(kept, group.size), moment->second);
    } else {
      Value &shared = done[{before.getAsOpaquePointer(), use.axis}];
      after = shared ? FailureOr<Value>(shared) : cut(group, use, use.indices(kept, group.size));
      if (succeeded(after))
        shared = *after;
    }
    if (failed(after))
      return failure();
    use.operand->set(*after);
    old.insert(before);
  }
  for (Value weight : old)
    eraseDead(weight.getDefiningOp());
  for (auto [value, dimension] : group.values) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dimension] = int64_t(kept.size());
    value.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  }
  group.size = int64_t(kept.size());
  return success();
}

LogicalResult mlir::llm::retypeCaches(ModuleOp module) {
  using Cache = std::pair<std::string, int64_t>;
  std::map<Cache, KVType> types;
  std::map<Cache, SmallVector<KVOp>> handles;
  module.walk([&](KVOp op) {
    const Cache cache{op.getCache().str(), op.getIndex()};
    handles[cache].push_back(op);
    types.try_emplace(cache, cast<KVType>(op.getHandle().getType()));
  });
  bool changed = false;
  WalkResult walked = module.walk([&](KVAppendOp append) {
    auto handle = append.getCache().getDefiningOp<KVOp>();
    if (!handle)
      return WalkResult::advance();
    KVType &type = types[{handle.getCache().str(), handle.getIndex()}];
    const auto key = cast<ShapedType>(append.getKey().getType());
    const int64_t valueWidth =
        append.getValue() ? cast<ShapedType>(append.getValue().getType()).getDimSize(2) : type.getValueWidth();
    auto wanted = KVType::getChecked([&] { return append.emitOpError(); }, module.getContext(), key.getDimSize(1),
                                     key.getDimSize(2), valueWidth, type.getKeyType(), type.getValueType(),
                                     type.getCapacity(), type.getWindow(), type.getSinks());
    if (!wanted)
      return WalkResult::interrupt();
    changed |= wanted != type;
    type = wanted;
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  if (!changed)
    return success();
  SymbolTable symbols(module);
  for (auto cache : llvm::to_vector(module.getOps<KVCacheOp>())) {
    SmallVector<std::pair<KVType, SmallVector<Cache>>> parts; // in order of their first layer
    for (auto &[key, type] : types)
      if (key.first == cache.getSymName()) {
        auto part = llvm::find_if(parts, [&](auto &part) { return part.first == type; });
        if (part == parts.end())
          part = parts.insert(parts.end(), {type, {}});
        part->second.push_back(key);
      }
    for (auto [i, part] : llvm::enumerate(parts)) {
      KVCacheOp into = cache;
      if (i > 0) {
        OpBuilder builder(module.getContext());
        builder.setInsertionPointAfter(cache);
        into = cast<KVCacheOp>(builder.clone(*cache));
        symbols.insert(into); // under a name that is free
      }
      into.setType(part.first);
      if (parts.size() > 1)
        into.setCount(int64_t(part.second.size()));
      for (auto [index, key] : llvm::enumerate(part.second))
        for (KVOp handle : handles[key]) {
          handle.setCacheAttr(FlatSymbolRefAttr::get(into.getSymNameAttr()));
          if (parts.size() > 1)
            handle.setIndex(int64_t(index));
          handle.getHandle().setType(part.first);
        }
    }
  }
  return success();
}
