#include "codegen/Kernels/Attention.h"

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

/// Lanes of the schedule that exchanges through shared memory, and the
/// positions of its chunk.
constexpr uint32_t kSharedLanes = 64;

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
  reader.maybe("window", spec.window, 0);
  reader.maybe("sinks", spec.sinks, 0);
  if (!KvFormat::known(spec.kv))
    reader.fail("expects kv f16 or f32, but got '" + spec.kv + "'");
  else if (spec.headSize % KvFormat::named(spec.kv).elementsPerWord())
    reader.fail("expects an even head size with an f16 cache, but got " +
                Twine(spec.headSize));
  if (spec.heads % spec.kvHeads)
    reader.fail("expects heads to be a multiple of kv_heads, but got " +
                Twine(spec.heads) + " and " + Twine(spec.kvHeads));
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
      .add("window", window)
      .add("sinks", sinks)
      .done();
}

bool AttentionSpec::lanesAlongHead(const TargetProfile &profile) const {
  // Each lane keeps the numbers of a few whole words of every query head in
  // registers; more than eight heads would spill everywhere.
  KvFormat format = KvFormat::named(kv);
  return profile.canShuffle() &&
         format.headWords(headSize) % profile.subgroupSize == 0 &&
         heads / kvHeads <= 8;
}

FailureOr<KernelInterface>
AttentionSpec::interface(const TargetProfile &profile,
                         EmitError emitError) const {
  bool lanes = lanesAlongHead(profile);
  KernelInterface interface;
  interface.key = llvm::formatv(
      "attention heads {0}/{1}x{2} kv {3} capacity {4} scale {5:e} softcap "
      "{6:e} window {7} sinks {8} {9}",
      heads, kvHeads, headSize, kv, capacity, scale, softcap, window, sinks,
      lanes ? "lanes" : "shared");
  interface.name = KernelInterface::nameFor(
      llvm::formatv("attention_{0}x{1}", heads, headSize).str(), interface.key);
  uint64_t rowBytes = uint64_t(heads) * headSize * 4;
  uint64_t cacheBytes = uint64_t(capacity) * kvHeads *
                        KvFormat::named(kv).headWords(headSize) * 4;
  interface.bindings = {{"q", Access::Read, rowBytes, true},
                        {"control", Access::Read, StepControl::kBytes},
                        {"keys", Access::Read, cacheBytes},
                        {"values", Access::Read, cacheBytes},
                        {"y", Access::Write, rowBytes, true}};
  interface.groups[1] = {1, 1};
  if (lanes) {
    interface.workgroup = {profile.subgroupSize, 1, 1};
    interface.subgroupSize = profile.subgroupSize;
    interface.groups[0] = {uint32_t(kvHeads), 0};
  } else {
    interface.workgroup = {kSharedLanes, 1, 1};
    interface.groups[0] = {uint32_t(heads), 0};
    // The query, the chunk's probabilities, and two reductions.
    interface.sharedBytes = uint32_t(headSize) * 4 + 3 * kSharedLanes * 4;
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

AttentionRange::AttentionRange(KernelBuilder &builder,
                               const AttentionSpec &spec, Value token,
                               int64_t chunk)
    : b(builder), spec(spec) {
  // Rows past Count may lie past the context: they compute on what there is.
  StepControl control(b, AttentionSlots::control);
  Value position = b.add(control.base(), token);
  limit = b.add(b.min(position, b.index(spec.capacity - 1)), 1);
  begin = b.index(0);
  if (spec.window && !spec.sinks) {
    Value hidden =
        b.sub(b.max(limit, b.index(spec.window)), b.index(spec.window));
    begin = b.mul(b.div(hidden, chunk), chunk);
  }
}

Value AttentionRange::sees(Value position) {
  Value visible = b.less(position, limit);
  if (spec.window) {
    Value near = b.less(limit, b.add(position, spec.window + 1));
    if (spec.sinks)
      near = b.bitOr(near, b.less(position, spec.sinks));
    visible = b.bitAnd(visible, near);
  }
  return visible;
}

Value AttentionRange::score(Value product, Value visible) {
  Value score = b.mul(product, b.constant(float(spec.scale)));
  if (spec.softcap != 0)
    score = b.mul(b.tanh(b.mul(score, b.constant(float(1 / spec.softcap)))),
                  b.constant(float(spec.softcap)));
  return b.select(visible, score, b.constant(kHidden));
}

} // namespace mlir::llm
