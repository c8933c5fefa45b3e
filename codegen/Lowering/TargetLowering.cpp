#include "codegen/Lowering/TargetLowering.h"

#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Lowering/KernelAttrs.h"

namespace mlir::llm {

static plan::TargetOp makeTarget(ModuleOp module, const TargetProfile &profile,
                                 StringRef profileName) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  // A profile that was read from a file is found again by that file's name.
  StringAttr file = profileName == profile.name
                        ? StringAttr()
                        : builder.getStringAttr(profileName);
  auto target =
      plan::TargetOp::create(builder, module.getLoc(), profile.name, file);
  target.getBody().emplaceBlock();
  return target;
}

TargetLowering::TargetLowering(ModuleOp module, const TargetProfile &profile,
                               StringRef profileName, WeightTable &weights,
                               const LoweringShape &shape)
    : module(module), shape(shape), targetProfile(profile),
      weightTable(weights), target(makeTarget(module, profile, profileName)),
      symbols(target), builder(target.getContext()) {}

FailureOr<const KernelInterface *>
TargetLowering::kernel(StringRef family, DictionaryAttr spec, Operation *user) {
  std::unique_ptr<KernelInterface> &known =
      kernels[{builder.getStringAttr(family), spec}];
  if (known)
    return known.get();
  FailureOr<KernelInterface> interface =
      describeKernel(family, spec, targetProfile, user->getLoc());
  if (failed(interface))
    return failure();
  known = std::make_unique<KernelInterface>(std::move(*interface));
  if (symbols.lookup(known->name)) // another spec with the same key
    return known.get();
  auto kernel = plan::KernelOp::create(builder, user->getLoc(), known->name,
                                       family, spec);
  setInterface(kernel, *known);
  insert(kernel);
  return known.get();
}

plan::BufferOp TargetLowering::buffer(plan::BufferKind kind, StringRef name,
                                      uint64_t bytes) {
  if (auto known = symbols.lookup<plan::BufferOp>(name)) {
    known.setBytes(std::max<uint64_t>(known.getBytes(), bytes));
    return known;
  }
  auto buffer = plan::BufferOp::create(builder, target.getLoc(), name, kind,
                                       bytes, /*offset=*/IntegerAttr());
  insert(buffer);
  return buffer;
}

/// The kernels' name for how `type` lies in memory; empty if they have none.
static std::string cacheFormat(KVType type) {
  // Shorter values lie as widely as keys.
  if (type.getValueType() != type.getKeyType() ||
      type.getKeyWidth() < type.getValueWidth())
    return {};
  if (type.getKeyType().isF16())
    return "f16";
  if (type.getKeyType().isF32())
    return "f32";
  auto quantised = dyn_cast<QuantizedType>(type.getKeyType());
  if (!quantised || quantised.isSparse() || quantised.getLevels().size() != 1)
    return {};
  const QuantLevel &level = quantised.getLevels()[0];
  if (quantised.getCode() == QuantCode::signedInt(8) &&
      level == QuantLevel::scaled(kWholeRow, ScaleType::f32()))
    return "i8";
  for (int64_t group : {16, 32, 64})
    if (quantised.getCode() == QuantCode::unsignedInt(4) &&
        level == QuantLevel::withOffset(group, ScaleType::f16(),
                                        OffsetKind::AddMin, ScaleType::f16()))
      return "u4x" + std::to_string(group);
  return {};
}

/// A side that no binding spans: parts of whole splits, and behind each of them
/// the slots that a tree may have gone on to; scales apart.
LogicalResult TargetLowering::cutIntoParts(KVOp handle, KVType type,
                                           CachePlan &place) const {
  const KvFormat format = KvFormat::named(place.format);
  const int64_t heads = type.getHeads(), width = type.getKeyWidth();
  const uint64_t most = targetProfile.limits.storageRange;
  const int64_t split = AttentionSpec::splitFor(shape.capacity);
  place.slotBytes = format.codeBytes(1, heads, width);
  const auto slots = int64_t(most / place.slotBytes);
  place.parts.part =
      (slots - int64_t(sprig::format::kMostNodes)) / split * split;
  place.sideBytes = format.codeBytes(shape.capacity, heads, width);
  if (format.quantised())
    place.scaleBytes = format.scaleBytes(shape.capacity, heads, width);
  if (place.parts.part >= split && 2 * place.scaleBytes <= most)
    return success();
  return handle.emitOpError("expects ")
         << split << " slots of the keys of a layer, and all scales, within the "
         << most << " bytes that a binding spans on target '"
         << targetProfile.name << "', but a slot takes " << place.slotBytes
         << " and the scales " << 2 * place.scaleBytes
         << "; compile with a shorter --context";
}

FailureOr<CachePlan> TargetLowering::cache(KVOp handle) {
  auto symbol = SymbolTable::lookupSymbolIn(module, handle.getCacheAttr());
  auto cache = cast<KVCacheOp>(symbol);
  KVType type = cache.getCacheType();
  std::string formatName = cacheFormat(type);
  if (formatName.empty())
    return handle.emitOpError(
               "expects a cache of f32, f16, 8-bit integers with an f32 scale a "
               "head, or 4-bit ones with a scale and a minimum in f16 for 16, "
               "32 or 64 of them, keys and values alike and values no wider, but "
               "got ")
           << type;
  if (std::string why = KvFormat::whyRefused(formatName, type.getKeyWidth());
      !why.empty())
    return handle.emitOpError(why);
  const KvFormat format = KvFormat::named(formatName);
  const uint64_t sideBytes = format.sideBytes(shape.capacity, type.getHeads(),
                                              type.getKeyWidth());
  CachePlan place;
  place.format = formatName;
  place.sideBytes = sideBytes;
  if (sideBytes > targetProfile.limits.storageRange &&
      failed(cutIntoParts(handle, type, place)))
    return failure();
  uint64_t stride =
      uint64_t(plan::alignTo(int64_t(place.sideBytes), plan::kAlignment));
  const uint64_t bothScales = uint64_t(
      plan::alignTo(int64_t(2 * place.scaleBytes), plan::kAlignment));
  place.layerBytes = 2 * stride + bothScales;
  uint64_t bytes = place.layerBytes * uint64_t(cache.getCount());
  std::string name = (cache.getSymName() + "_cache").str();
  plan::BufferOp store = buffer(plan::BufferKind::kv, name, bytes);
  if (!symbols.lookup(cache.getSymName())) {
    std::string element;
    llvm::raw_string_ostream(element) << type.getKeyType();
    // Codes, then their scales, of keys and of values.
    const int64_t codes = type.getHeads() * 4 *
                          format.headWords(type.getKeyWidth()),
                  scales =
                      type.getHeads() * 4 * format.groups(type.getKeyWidth());
    SmallVector<int64_t> offsets, slots;
    for (int64_t side : {0, 1}) {
      const int64_t first = side * int64_t(stride);
      offsets.push_back(first), slots.push_back(codes);
      if (scales)
        offsets.push_back(place.parts
                              ? int64_t(2 * stride +
                                        uint64_t(side) * place.scaleBytes)
                              : first + shape.capacity * codes),
            slots.push_back(scales);
    }
    insert(plan::KvCacheOp::create(
        builder, cache.getLoc(), cache.getSymName(), name, /*offset=*/0, bytes,
        cache.getCount(), type.getHeads(), type.getKeyWidth(), shape.capacity,
        type.getWindow(), type.getSinks(), element, element,
        offsets, slots));
  }
  place.buffer = store;
  place.keys = place.layerBytes * handle.getIndex();
  place.values = place.keys + stride;
  place.scales = place.values + stride;
  return place;
}

void TargetLowering::insert(Operation *op) {
  // Buffers, then caches, kernels and programs, each in the order of first use.
  auto rank = [](Operation &other) {
    return isa<plan::BufferOp>(other)    ? 0
           : isa<plan::KvCacheOp>(other) ? 1
           : isa<plan::KernelOp>(other)  ? 2
                                         : 3;
  };
  Block &body = target.getBody().front();
  auto at = llvm::find_if(
      body, [&](Operation &other) { return rank(other) > rank(*op); });
  symbols.insert(op, at);
}

} // namespace mlir::llm
