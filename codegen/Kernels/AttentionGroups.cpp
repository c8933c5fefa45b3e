#include "codegen/Kernels/AttentionGroups.h"

#include "codegen/Kernels/AttentionRange.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr unsigned kControl = 0, kAttention = 1, kCombine = 2;

} // namespace

FailureOr<AttentionGroupsSpec>
AttentionGroupsSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  AttentionGroupsSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.maybe("heads_a_group", spec.headsAGroup, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.maybe("window", spec.window, 0);
  reader.maybe("sinks", spec.sinks, 0);
  reader.read("split", spec.split, 1);
  reader.maybe("tokens", spec.tokens, 1);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr AttentionGroupsSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("heads", heads)
      .add("heads_a_group", headsAGroup)
      .add("capacity", capacity)
      .add("window", window)
      .add("sinks", sinks)
      .add("split", split)
      .add("tokens", tokens)
      .done();
}

FailureOr<KernelInterface> AttentionGroupsSpec::interface(const TargetProfile &,
                                                          EmitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv(
      "attention_groups heads {0}/{1} capacity {2} window {3} sinks {4} split "
      "{5} tokens {6}",
      heads, headsAGroup, capacity, window, sinks, split, tokens);
  interface.name = KernelInterface::nameFor("attention_groups", interface.key);
  interface.bindings = {{"control", Access::Read, StepControl::kBytes},
                        {"attention", Access::Write, kBytes},
                        {"combine", Access::Write, kBytes}};
  return interface;
}

void AttentionGroupsSpec::build(KernelBuilder &b,
                                const KernelInterface &) const {
  b.open({b.i32(), b.i32(), b.i32()});
  AttentionRange range(b, {capacity, window, sinks, split}, kControl);
  Value splits = range.splits();
  Value tiles = b.div(b.add(range.count(), tokens - 1), tokens);
  Value combined =
      b.select(b.less(b.index(1), splits), b.index(heads), b.index(0));
  auto set = [&](unsigned binding, ArrayRef<Value> counts) {
    for (auto [i, count] : llvm::enumerate(counts))
      b.store(b.toI32(count), binding, b.index(int64_t(i)));
  };
  set(kAttention, {b.index(heads / headsAGroup), tiles, splits});
  set(kCombine, {combined, range.count(), b.index(1)});
  b.close();
}

} // namespace mlir::llm
