#include "codegen/Kernels/TreeAccept.h"

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

using sprig::format::kMostNodes;

FailureOr<TreeAcceptSpec> TreeAcceptSpec::fromAttr(DictionaryAttr attr,
                                                   EmitError emitError) {
  TreeAcceptSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1, kMostNodes);
  reader.read("capacity", spec.capacity, 1);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr TreeAcceptSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("width", width)
      .add("capacity", capacity)
      .done();
}

FailureOr<KernelInterface> TreeAcceptSpec::interface(const TargetProfile &,
                                                     EmitError) const {
  KernelInterface interface;
  interface.key =
      llvm::formatv("tree_accept {0} capacity {1}", width, capacity);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("tree_accept_{0}", width).str(), interface.key);
  interface.bindings = {
      {"control", Access::ReadWrite, StepControl::kBytes},
      {"history", Access::ReadWrite, uint64_t(capacity + width) * 4},
      {"drawn", Access::Read, uint64_t(width) * 4}};
  return interface;
}

void TreeAcceptSpec::build(KernelBuilder &b, const KernelInterface &) const {
  constexpr unsigned kControl = 0, kHistory = 1, kDrawn = 2;
  b.open({b.i32(), b.i32(), b.i32()});
  StepControl control(b, kControl);
  Value base = b.min(control.base(), b.index(capacity - 1));
  Value count = b.min(control.count(), b.index(width));
  // Children come after their parents, so one pass walks the whole path. What
  // is written lies before what is still read: the node taken k-th is not
  // before node k.
  Values walked = b.loop(
      b.index(1), b.max(count, b.index(1)), b.index(1),
      {b.index(0), b.index(0), b.load(kDrawn, b.index(0)), b.constant(0u)},
      [&](Value node, ValueRange state) {
        Value at = state[0], accepted = state[1], wanted = state[2];
        Value token = b.load(kHistory, b.add(base, node));
        Value child =
            b.equal(control.packedByte(sprig::format::Parents, node), at);
        Value taken = b.bitAnd(child, b.equal(token, wanted));
        // Four nodes of the path share a word.
        Value shift = b.toI32(b.mul(b.rem(accepted, 4), 8));
        Value word = b.select(b.equal(b.rem(accepted, 4), b.index(0)),
                              b.constant(0u), state[3]);
        Value path = b.bitOr(word, b.shl(b.toI32(node), shift));
        b.when(taken, [&] {
          b.store(path, kControl,
                  b.add(b.div(accepted, 4), int64_t(sprig::format::Path)));
          b.store(token, kHistory, b.add(b.add(base, accepted), 1));
        });
        return Values{b.select(taken, node, at),
                      b.select(taken, b.add(accepted, 1), accepted),
                      b.select(taken, b.load(kDrawn, node), wanted),
                      b.select(taken, path, state[3])};
      });
  Value accepted = walked[1], bonus = walked[2];
  Value next = b.add(b.add(base, accepted), 1);
  Value steps = control.word(sprig::format::Steps);
  b.store(bonus, kHistory, next);
  auto set = [&](sprig::format::ControlWord word, Value value) {
    b.store(value, kControl, b.index(word));
  };
  set(sprig::format::Accepted, b.toI32(accepted));
  set(sprig::format::Sampled, bonus);
  set(sprig::format::Base, b.toI32(next));
  set(sprig::format::Count, b.constant(1u));
  set(sprig::format::Steps, b.add(steps, b.constant(1u)));
  b.close();
}

FailureOr<KvCompactSpec> KvCompactSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  KvCompactSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("kv_heads", spec.kvHeads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.read("width", spec.width, 1, kMostNodes);
  reader.read("kv", spec.kv);
  reader.maybe("layers", spec.layers, 1);
  reader.maybe("stride", spec.stride, 4);
  if (spec.layers > 1 && spec.stride % 4 != 0)
    reader.fail("expects a stride of whole words between layers, but got " +
                std::to_string(spec.stride));
  if (std::string why = KvFormat::whyRefused(spec.kv, spec.headSize);
      !why.empty())
    reader.fail(why);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr KvCompactSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("kv_heads", kvHeads)
      .add("head_size", headSize)
      .add("capacity", capacity)
      .add("width", width)
      .add("kv", StringRef(kv))
      .add("layers", layers > 1 ? layers : 0)
      .add("stride", stride)
      .done();
}

FailureOr<KernelInterface>
KvCompactSpec::interface(const TargetProfile &profile, EmitError) const {
  KernelInterface interface;
  bool narrow = profile.subgroupSize && profile.subgroupSize <= 8;
  interface.workgroup = {narrow ? profile.subgroupSize : 64, 1, 1};
  interface.key = llvm::formatv(
      "kv_compact heads {0}x{1} kv {2} capacity {3} width {4} lanes {5}",
      kvHeads, headSize, kv, capacity, width, interface.workgroup[0]);
  if (layers > 1)
    interface.key += llvm::formatv(" layers {0} each {1}", layers, stride);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("kv_compact_{0}x{1}", kvHeads, headSize).str(),
      interface.key);
  KvFormat format = KvFormat::named(kv);
  int64_t words =
      kvHeads * (format.headWords(headSize) + format.groups(headSize));
  uint64_t bytes = format.sideBytes(capacity, kvHeads, headSize) +
                   uint64_t((layers - 1) * stride);
  interface.bindings = {{"control", Access::Read, StepControl::kBytes},
                        {"keys", Access::ReadWrite, bytes},
                        {"values", Access::ReadWrite, bytes}};
  interface.groups[0] = {
      uint32_t((words + interface.workgroup[0] - 1) / interface.workgroup[0]),
      0};
  interface.groups[1] = {uint32_t(layers), 0};
  return interface;
}

void KvCompactSpec::build(KernelBuilder &b, const KernelInterface &) const {
  constexpr unsigned kControl = 0, kKeys = 1, kValues = 2;
  b.open({b.i32(), b.i32(), b.i32()});
  StepControl control(b, kControl);
  KvFormat format = KvFormat::named(kv);
  // Scales travel with their codes.
  int64_t codes = kvHeads * format.headWords(headSize),
          scales = kvHeads * format.groups(headSize);
  Value word = b.globalId(), isCode = b.less(word, codes);
  Value first = word, words = b.index(codes);
  if (scales) {
    first = b.select(
        isCode, word,
        b.sub(b.add(word, capacity * codes), b.index(codes)));
    words = b.select(isCode, words, b.index(scales));
  }
  Value accepted = b.min(b.toIndex(control.word(sprig::format::Accepted)),
                         b.index(width - 1));
  Value next = b.max(control.base(), b.add(accepted, 1));
  Value base = b.sub(next, b.add(accepted, 1)); // of node 0
  Value layer = b.mul(b.groupId(1), stride / 4);
  // A lane moves one word of every slot, in ascending order: no lane reads what
  // another writes.
  b.when(b.less(word, codes + scales), [&] {
    b.loop(b.index(0), accepted, b.index(1), {}, [&](Value k, ValueRange) {
      Value node =
          b.min(control.packedByte(sprig::format::Path, k), b.index(width - 1));
      auto place = [&](Value slot) {
        Value inside = b.min(slot, b.index(capacity - 1));
        return b.add(b.add(b.mul(inside, words), first), layer);
      };
      // The likeliest path comes first, and then stays where it is.
      b.when(b.less(b.add(k, 1), node), [&] {
        Value from = place(b.add(base, node)),
              to = place(b.add(b.add(base, k), 1));
        for (unsigned side : {kKeys, kValues})
          b.store(b.load(side, from), side, to);
      });
      return Values{};
    });
  });
  b.close();
}

} // namespace mlir::llm
