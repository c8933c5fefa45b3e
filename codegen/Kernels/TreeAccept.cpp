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
  spec.readFrom(reader);
  reader.read("width", spec.width, 1, kMostNodes);
  reader.maybe("part", spec.cache.part, 0);
  if (spec.cache && spec.layers != 1)
    reader.fail("expects one layer of a cache in parts, but got " +
                Twine(spec.layers));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr KvCompactSpec::toAttr(MLIRContext *context) const {
  SpecWriter writer(context);
  addTo(writer);
  return writer.add("width", width).add("part", cache.part).done();
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
  if (cache)
    interface.key += llvm::formatv(" part {0}", cache.part);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("kv_compact_{0}x{1}", kvHeads, headSize).str(),
      interface.key);
  KvFormat format = KvFormat::named(kv);
  int64_t words =
      kvHeads * (format.headWords(headSize) + format.groups(headSize));
  uint64_t bytes =
      cache ? format.codeBytes(cache.spanned(capacity), kvHeads, headSize)
            : format.sideBytes(capacity, kvHeads, headSize) +
                  uint64_t((layers - 1) * stride);
  interface.bindings = {{"control", Access::Read, StepControl::kBytes},
                        {"keys", Access::ReadWrite, bytes},
                        {"values", Access::ReadWrite, bytes}};
  if (cache) {
    for (unsigned side : {1u, 2u})
      interface.bindings[side].shorter =
          bytes -
          format.codeBytes(cache.leastSpanned(capacity), kvHeads, headSize);
    if (format.quantised())
      interface.bindings.push_back(
          {"scales", Access::ReadWrite,
           2 * format.scaleBytes(capacity, kvHeads, headSize)});
  }
  interface.groups[0] = {
      uint32_t((words + interface.workgroup[0] - 1) / interface.workgroup[0]),
      0};
  interface.groups[1] = {uint32_t(layers), 0};
  interface.groups[2] = {uint32_t(cache.count(capacity)), 0};
  return interface;
}

void KvCompactSpec::build(KernelBuilder &b, const KernelInterface &) const {
  constexpr unsigned kControl = 0, kKeys = 1, kValues = 2, kScales = 3;
  SmallVector<Type> types{b.i32(), b.i32(), b.i32()};
  KvFormat format = KvFormat::named(kv);
  const bool apart = cache && format.quantised();
  if (apart)
    types.push_back(b.i32());
  b.open(types);
  StepControl control(b, kControl);
  // Scales travel with their codes.
  int64_t codes = kvHeads * format.headWords(headSize),
          scales = kvHeads * format.groups(headSize);
  Value word = b.globalId(), isCode = b.less(word, codes);
  Value first = word, words = b.index(codes);
  if (apart) {
    first = b.select(isCode, word, b.sub(b.max(word, b.index(codes)),
                                         b.index(codes)));
    words = b.select(isCode, words, b.index(scales));
  } else if (scales) {
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
  Value wanted = b.less(word, codes + scales), partBegin;
  if (cache) {
    partBegin = b.mul(b.groupId(2), cache.part);
    Value mine = b.bitAnd(b.less(partBegin, b.add(base, 1)),
                          b.less(base, b.add(partBegin, cache.part)));
    wanted = b.bitAnd(wanted, mine);
  }
  // A lane moves one word of every slot, in ascending order: no lane reads what
  // another writes.
  b.when(wanted, [&] {
    b.loop(b.index(0), accepted, b.index(1), {}, [&](Value k, ValueRange) {
      Value node =
          b.min(control.packedByte(sprig::format::Path, k), b.index(width - 1));
      auto place = [&](Value slot) {
        Value inside = b.min(slot, b.index(capacity - 1));
        if (cache) {
          // Scales have a binding for all slots.
          Value local = b.sub(b.max(inside, partBegin), partBegin);
          inside = apart ? b.select(isCode, local, inside) : local;
        }
        return b.add(b.add(b.mul(inside, words), first), layer);
      };
      auto move = [&](Value from, Value to) {
        for (unsigned side : {kKeys, kValues})
          b.store(b.load(side, from), side, to);
      };
      // Of the keys, then of the values.
      const auto behindKeys =
          int64_t(format.scaleBytes(capacity, kvHeads, headSize) / 4);
      auto moveScale = [&](Value from, Value to) {
        for (int64_t behind : {int64_t(0), behindKeys})
          b.store(b.load(kScales, b.add(from, behind)), kScales,
                  b.add(to, behind));
      };
      // The likeliest path comes first, and then stays where it is.
      b.when(b.less(b.add(k, 1), node), [&] {
        Value from = place(b.add(base, node)),
              to = place(b.add(b.add(base, k), 1));
        if (!apart)
          return move(from, to);
        b.when(isCode, [&] { move(from, to); });
        b.when(b.bitXor(isCode, b.constantLike(isCode, 1)),
               [&] { moveScale(from, to); });
      });
      return Values{};
    });
  });
  b.close();
}

} // namespace mlir::llm
