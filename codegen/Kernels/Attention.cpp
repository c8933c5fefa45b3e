#include "codegen/Kernels/Attention.h"

#include "codegen/Kernels/AttentionBuild.h"
#include "codegen/Kernels/AttentionSchedule.h"
#include "codegen/Kernels/ByteDots.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "codegen/Kernels/TreeTable.h"
#include "dialects/LLM/WeightBlock.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

/// Lanes of the schedule that exchanges through shared memory, and the
/// positions of its chunk.
constexpr uint32_t kSharedLanes = 64;
/// Splits of a full context, and positions of a split, at least.
constexpr int64_t kMostSplits = 64, kLeastSplit = 256;
/// Numbers of a head whose products of integers f32 adds up exactly.
constexpr int64_t kExactHead = 1024;

} // namespace

FailureOr<AttentionSpec> AttentionSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  AttentionSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.read("kv_heads", spec.kvHeads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.read("kv", spec.kv);
  reader.read("scale", spec.scale);
  reader.maybe("softcap", spec.softcap);
  reader.maybe("value_size", spec.valueSize, 0, spec.headSize);
  reader.read("bias", spec.bias);
  reader.maybe("window", spec.window, 0);
  reader.maybe("sinks", spec.sinks, 0);
  reader.read("split", spec.split, 1);
  reader.maybe("tokens", spec.tokens, 1);
  reader.maybe("parts", spec.parts, 0);
  reader.maybe("tree", spec.tree, 0, sprig::format::kMostNodes);
  reader.maybe("hidden", spec.hidden, 0, spec.split);
  reader.maybe("block_size", spec.blocks.size, 0);
  reader.maybe("block_local", spec.blocks.local, 1);
  reader.maybe("block_first", spec.blocks.first, 0);
  reader.maybe("block_stride", spec.blocks.stride, 0);
  reader.maybe("group", spec.group, 0);
  reader.read("integers", spec.integers);
  reader.maybe("part", spec.cache.part, 0);
  if (spec.integers && (spec.kv != "i8" || spec.headSize > kExactHead))
    reader.fail("expects a cache of i8 and heads of at most " +
                Twine(kExactHead) + " numbers with integers, but got " +
                spec.kv + " and " + Twine(spec.headSize));
  if (spec.cache && (spec.cache.part % spec.split || !spec.parts))
    reader.fail("expects parts of whole splits, with results of their own, but "
                "got " +
                Twine(spec.cache.part) + " slots of splits of " +
                Twine(spec.split));
  if (spec.tree && spec.tokens != 1)
    reader.fail("expects one token a workgroup in a tree, but got " +
                Twine(spec.tokens));
  if (std::string why = KvFormat::whyRefused(spec.kv, spec.headSize);
      !why.empty())
    reader.fail(why);
  if (spec.heads % spec.kvHeads)
    reader.fail("expects heads to be a multiple of kv_heads, but got " +
                Twine(spec.heads) + " and " + Twine(spec.kvHeads));
  if (spec.split % kSharedLanes)
    reader.fail("expects splits of a multiple of " + Twine(kSharedLanes) +
                " positions, but got " + Twine(spec.split));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr AttentionSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("heads", heads)
      .add("kv_heads", kvHeads)
      .add("head_size", headSize)
      .add("capacity", capacity)
      .add("kv", StringRef(kv))
      .add("scale", scale)
      .add("softcap", softcap)
      .add("value_size", valueSize)
      .flag("bias", bias)
      .add("window", window)
      .add("sinks", sinks)
      .add("split", split)
      .add("tokens", tokens)
      .add("parts", parts)
      .add("tree", tree)
      .add("hidden", hidden)
      .add("block_size", blocks.size)
      .add("block_local", blocks ? blocks.local : 0)
      .add("block_first", blocks.first)
      .add("block_stride", blocks.stride)
      .add("group", group)
      .flag("integers", integers)
      .add("part", cache.part)
      .done();
}

int64_t AttentionSpec::splitFor(int64_t capacity) {
  int64_t least = (capacity + kMostSplits - 1) / kMostSplits;
  return std::max(kLeastSplit, int64_t(llvm::PowerOf2Ceil(uint64_t(least))));
}

int64_t AttentionSpec::partsFor(int64_t width) const {
  int64_t all = (capacity + split - 1) / split;
  if (!window || sinks)
    return all;
  // The window of the first token may start, and the last token may lie, in a
  // split of which little else is seen.
  return std::min(all, (window + width - 2) / split + 2);
}

int64_t AttentionSpec::groupHeads() const {
  // More query heads would spill everywhere.
  int64_t ratio = heads / kvHeads;
  // Integers have codes and scales of weights beside the sums.
  int64_t most = std::min(
      ratio, std::clamp<int64_t>(2048 / headSize, 1, integers ? 4 : 8));
  if (group)
    most = std::min(most, group);
  while (ratio % most)
    --most;
  return most;
}

int64_t AttentionSpec::tokensFor(int64_t width,
                                 const TargetProfile &profile) const {
  FailureOr<AttentionSchedule> schedule = AttentionSchedule::of(profile);
  if (failed(schedule) || !lanesAlongHead(profile))
    return 1;
  // Whole tiles: rows past the width are nobody's.
  const bool deep = width >= AttentionSchedule::kWide &&
                    capacity >= AttentionSchedule::kDeep;
  int64_t numbers = deep ? std::max(schedule->numbers, schedule->deepNumbers)
                         : schedule->numbers;
  if (schedule->codeNumbers && !integers && KvFormat::named(kv).quantised())
    numbers = schedule->codeNumbers;
  int64_t tile = std::min<int64_t>(
      {numbers / (groupHeads() * headSize), width, 8});
  tile = std::max<int64_t>(tile, 1);
  while (width % tile)
    --tile;
  return tile;
}

bool AttentionSpec::lanesAlongHead(const TargetProfile &profile) const {
  // Each lane keeps the numbers of a few whole words of every query head in
  // registers.
  if (!profile.canShuffle() || profile.subgroupSize > kSharedLanes)
    return false;
  KvFormat format = KvFormat::named(kv);
  int64_t words = format.headWords(headSize), lanes = profile.subgroupSize;
  if (!format.quantised())
    return words % lanes == 0;
  if (integers && lanes % kWeightBlock)
    return false;
  // Or of one word that a few lanes share, in one group of scales.
  return (words % lanes == 0 || lanes % words == 0) && headSize % lanes == 0 &&
         headSize / format.groups(headSize) % (headSize / lanes) == 0;
}

bool AttentionSpec::readsTexels(const TargetProfile &profile) const {
  FailureOr<AttentionSchedule> schedule = AttentionSchedule::of(profile);
  return succeeded(schedule) && schedule->texels && lanesAlongHead(profile) &&
         KvFormat::named(kv).headWords(headSize) % (4 * profile.subgroupSize) ==
             0;
}

bool AttentionSpec::touches(const TargetProfile &profile) const {
  FailureOr<AttentionSchedule> schedule = AttentionSchedule::of(profile);
  // Several tokens have so much to compute for each position that it comes by
  // itself; nodes of a tree look up where their positions are.
  return succeeded(schedule) && schedule->touch &&
         capacity >= AttentionSchedule::kDeep && tokens == 1 && !tree &&
         !blocks && readsTexels(profile);
}

FailureOr<KernelInterface>
AttentionSpec::interface(const TargetProfile &profile,
                         EmitError emitError) const {
  if (failed(AttentionSchedule::from(profile, emitError)))
    return failure();
  bool lanes = lanesAlongHead(profile);
  KernelInterface interface;
  interface.key = llvm::formatv(
      "attention heads {0}/{1}x{2} kv {3} capacity {4} scale {5:e} softcap "
      "{6:e} window {7} sinks {8} split {9} tokens {10} parts {11} tree {12} "
      "{13}",
      heads, kvHeads, headSize, kv, capacity, scale, softcap, window, sinks,
      split, tokens, parts, tree, lanes ? "lanes" : "shared");
  if (group)
    interface.key += llvm::formatv(" group {0}", group);
  if (valueSize)
    interface.key += llvm::formatv(" values {0}", valueSize);
  if (bias)
    interface.key += " bias";
  if (hidden)
    interface.key += llvm::formatv(" hidden {0}", hidden);
  if (blocks)
    interface.key += llvm::formatv(" blocks {0} local {1} first {2} stride {3}",
                                   blocks.size, blocks.local, blocks.first,
                                   blocks.stride);
  if (integers)
    interface.key += lanes && hasByteDots(profile) ? " integers, dots" : " integers";
  if (touches(profile))
    interface.key += " touch";
  if (cache)
    interface.key += llvm::formatv(" part {0}", cache.part);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("attention_{0}x{1}_t{2}", heads, headSize, tokens).str(),
      interface.key);
  uint64_t rowBytes = uint64_t(heads) * headSize * 4;
  const KvFormat format = KvFormat::named(kv);
  uint64_t cacheBytes =
      cache ? format.codeBytes(cache.spanned(capacity), kvHeads, headSize)
            : format.sideBytes(capacity, kvHeads, headSize);
  interface.bindings = {{"q", Access::Read, rowBytes, true},
                        {"control", Access::Read, StepControl::kBytes},
                        {"keys", Access::Read, cacheBytes},
                        {"values", Access::Read, cacheBytes},
                        {"y", Access::Write,
                         uint64_t(heads * valueNumbers()) * 4, true}};
  if (readsTexels(profile)) {
    for (unsigned side : {AttentionSlots::keys, AttentionSlots::values})
      interface.bindings[side].texel = TexelFormat::Rgba32Uint;
    interface.bindings[AttentionSlots::q].texel =
        headSize / profile.subgroupSize % 4 || valueNumbers() % 4
            ? TexelFormat::R32Sfloat
                                            : TexelFormat::Rgba32Sfloat;
  }
  if (parts) {
    interface.bindings.push_back(
        {"partial", Access::Write, rowBytes * uint64_t(parts), true});
    interface.bindings.push_back(
        {"stats", Access::Write, uint64_t(heads * parts) * 8, true});
  }
  if (tree)
    interface.bindings.push_back(
        {"tree", Access::Read, TreeTableSpec::bytes(tree)});
  if (bias)
    interface.bindings.push_back({"bias", Access::Read, uint64_t(heads) * 4});
  if (cache) {
    for (unsigned side : {AttentionSlots::keys, AttentionSlots::values})
      interface.bindings[side].shorter =
          cacheBytes -
          format.codeBytes(cache.leastSpanned(capacity), kvHeads, headSize);
    if (format.quantised())
      interface.bindings.push_back(
          {"scales", Access::Read,
           2 * format.scaleBytes(capacity, kvHeads, headSize)});
    if (format.quantised() && readsTexels(profile))
      interface.bindings.back().texel = TexelFormat::Rgba32Uint;
  }
  interface.tokenTile = uint32_t(tokens);
  interface.groups[0] = {uint32_t(heads / groupHeads()), 0};
  interface.groups[1] = {1, uint32_t(tokens)};
  // With parts of the cache: those of all splits, of which a dispatch takes its
  // own.
  const int64_t splits = cache ? llvm::divideCeilSigned(capacity, split)
                               : std::max<int64_t>(parts, 1);
  interface.groups[2] = {uint32_t(splits), 0};
  if (lanes) {
    interface.workgroup = {profile.subgroupSize, 1, 1};
    interface.subgroupSize = profile.subgroupSize;
  } else {
    interface.workgroup = {kSharedLanes, 1, 1};
    // The queries, the chunk's weights, and two reductions a query.
    int64_t queries = tokens * groupHeads();
    interface.sharedBytes =
        uint32_t(queries * (headSize * 4 + 3 * int64_t(kSharedLanes) * 4));
    // And of integers two more, and the scales of the chunk's weights.
    if (integers)
      interface.sharedBytes += uint32_t(
          queries * 4 * (2 * int64_t(kSharedLanes) + kSharedLanes / kWeightBlock));
    if (profile.canShuffle())
      interface.subgroupSize = profile.subgroupSize;
  }
  return interface;
}

void AttentionSpec::build(KernelBuilder &b,
                          const KernelInterface &interface) const {
  if (lanesAlongHead(b.target()))
    buildAttentionLanes(b, *this);
  else
    buildAttentionShared(b, *this, interface);
}

} // namespace mlir::llm
