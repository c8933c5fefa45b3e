#include "codegen/Kernels/KvEvict.h"

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/LaneExchange.h"
#include "codegen/Kernels/RopeTable.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace mlir::llm {
namespace {

constexpr unsigned kControl = 0, kCells = 1, kTable = 2;
constexpr int64_t kLanes = 64; ///< of a workgroup
/// Workgroups among which the slots that go are shared out.
constexpr int64_t kChains = 32;

/// Lanes that turn a head: a power of two, so that they find scales together.
int64_t lanesOf(const KvEvictSpec &spec) {
  int64_t words = KvFormat::named(spec.kv).headWords(spec.headSize);
  return std::min(int64_t(llvm::PowerOf2Ceil(uint64_t(words))), kLanes);
}
int64_t roundsOf(const KvEvictSpec &spec) {
  int64_t words = KvFormat::named(spec.kv).headWords(spec.headSize);
  return llvm::divideCeilSigned(words, lanesOf(spec));
}

class Builder {
public:
  Builder(KernelBuilder &builder, const KvEvictSpec &spec);
  void move();
  void turn(const KernelInterface &interface);

private:
  /// Calls `body` with each slot that moves, in the order that is safe, once a
  /// workgroup.
  void eachSlot(function_ref<void(Value slot)> body);
  Value to(Value slot) { return b.sub(slot, drop); }
  Value place(Value slot, Value head, Value word) {
    return b.add(
        b.add(b.mul(b.add(b.mul(slot, s.kvHeads), head), words), word), layer);
  }
  Value scalePlace(Value slot, Value head, Value group) {
    Value first = format.scaleWord(b, b.add(b.mul(slot, s.kvHeads), head),
                                   s.capacity, s.kvHeads, s.headSize);
    return b.add(b.add(first, group), layer);
  }
  /// The Walsh-Hadamard transform of a head, which is its own inverse.
  void transform(Values &numbers, Value lane);

  KernelBuilder &b;
  const KvEvictSpec &s;
  KvFormat format;
  int64_t words;
  Value layer, sinks, drop, end;
  Value exchanged;
};

Builder::Builder(KernelBuilder &builder, const KvEvictSpec &spec)
    : b(builder), s(spec), format(KvFormat::named(spec.kv)),
      words(format.headWords(spec.headSize)) {
  StepControl control(b, kControl);
  // Whatever the block says, slots are those of the cache.
  Value all = b.index(s.capacity);
  auto within = [&](sprig::format::ControlWord word) {
    return b.min(b.toIndex(control.word(word)), all);
  };
  sinks = within(sprig::format::Sinks);
  drop = b.max(within(sprig::format::Dropped), b.index(1));
  end = within(sprig::format::Base);
  layer = b.mul(b.groupId(2), s.stride / 4);
}

void Builder::eachSlot(function_ref<void(Value)> body) {
  Value first = b.add(sinks, drop);
  b.loop(b.groupId(1), drop, b.index(kChains), {},
         [&](Value chain, ValueRange) {
           b.loop(b.add(first, chain), end, drop, {},
                  [&](Value slot, ValueRange) {
                    body(slot);
                    return Values{};
                  });
           return Values{};
         });
}

void Builder::move() {
  const int64_t codes = s.kvHeads * words,
                scales = s.kvHeads * format.groups(s.headSize);
  Value word = b.globalId(0);
  Value isCode = b.less(word, codes);
  auto placeOf = [&](Value slot) {
    Value code = b.add(b.mul(slot, codes), word);
    if (!scales)
      return b.add(code, layer);
    Value scale = b.add(b.mul(slot, scales),
                        b.sub(b.add(word, s.capacity * codes), b.index(codes)));
    return b.add(b.select(isCode, code, scale), layer);
  };
  b.when(b.less(word, codes + scales), [&] {
    eachSlot([&](Value slot) {
      b.store(b.load(kCells, placeOf(slot)), kCells, placeOf(to(slot)));
    });
  });
}

void Builder::transform(Values &numbers, Value lane) {
  if (!s.hadamard)
    return;
  transformLanes(b, numbers, s.hadamard, lane, kLanes, exchanged);
  Value unit = b.constant(float(1 / std::sqrt(double(s.hadamard))));
  for (Value &number : numbers)
    number = b.mul(number, unit);
}

void Builder::turn(const KernelInterface &interface) {
  const int64_t lanes = lanesOf(s), rounds = roundsOf(s);
  const int64_t pack = format.elementsPerWord();
  const int64_t groups = format.groups(s.headSize);
  const int64_t room = lanes * rounds * pack; // of a head in shared memory
  Value local = b.localId();
  Value lane = b.rem(local, lanes), mine = b.div(local, lanes);
  Value wanted = b.add(b.mul(b.groupId(0), kLanes / lanes), mine);
  // Lanes past the last head, or the last word, work on it once more for
  // nobody.
  Value head = b.min(wanted, b.index(s.kvHeads - 1));
  Value isHead = b.less(wanted, s.kvHeads);
  Value heads = b.shared(b.f32(), room * (kLanes / lanes));
  Value start = b.mul(mine, room);
  RopeAppendSpec rotation;
  rotation.headSize = s.headSize, rotation.dims = s.dims;
  rotation.capacity = s.capacity;
  RopeTable table(b, rotation, interface, kTable,
                  b.min(drop, b.index(s.capacity - 1)));
  eachSlot([&](Value slot) {
    std::vector<Values> numbers;
    Values wordOf, scaleOf;
    for (int64_t r = 0; r < rounds; ++r) {
      wordOf.push_back(b.min(b.add(lane, r * lanes), b.index(words - 1)));
      KvScale scale;
      if (groups) {
        Value group = b.div(wordOf[r], words / groups);
        scale =
            format.scaleOf(b, b.load(kCells, scalePlace(slot, head, group)));
      }
      numbers.push_back(format.unpack(
          b, b.load(kCells, place(slot, head, wordOf[r])), scale));
      transform(numbers[r], lane);
    }
    b.barrier(); // the last slot's numbers have been read
    for (int64_t r = 0; r < rounds; ++r)
      for (int64_t i = 0; i < pack; ++i)
        b.store(numbers[r][i], heads,
                b.add(start, b.add(b.mul(b.add(lane, r * lanes), pack), i)));
    b.barrier();
    HeadScales scales(b, format, lanes, words, groups);
    for (int64_t r = 0; r < rounds; ++r) {
      for (int64_t i = 0; i < pack; ++i) {
        Value element = b.add(b.mul(wordOf[r], pack), i);
        RopePair pair = ropePair(b, element, s.dims, s.interleaved);
        Value partner = b.load(heads, b.add(start, pair.partner));
        // The other way round than a rotation: as if it were the pair's other
        // number.
        Value second = b.bitXor(pair.first, b.constantLike(pair.first, 1));
        Value turned =
            table.turn(numbers[r][i], partner, second, pair.index);
        numbers[r][i] = b.select(pair.inside, turned, numbers[r][i]);
      }
      transform(numbers[r], lane);
      if (!groups)
        continue;
      if (words % lanes)
        for (Value &number : numbers[r])
          number = b.select(b.less(b.add(lane, r * lanes), words), number,
                            b.constant(0.0f));
      scales.add(numbers[r]);
    }
    const Values scaleWords = groups ? scales.done() : Values();
    for (int64_t r = 0; r < rounds; ++r) {
      Value own = b.bitAnd(isHead, b.less(b.add(lane, r * lanes), words));
      b.when(own, [&] {
        Value target = place(to(slot), head, wordOf[r]);
        if (!groups) {
          b.store(format.pack(b, numbers[r]), kCells, target);
          return;
        }
        Value scale = scaleWords[r];
        b.store(format.encode(b, numbers[r], scale), kCells, target);
        b.when(b.equal(b.rem(wordOf[r], words / groups), b.index(0)), [&] {
          b.store(scale, kCells,
                  scalePlace(to(slot), head,
                             b.div(wordOf[r], words / groups)));
        });
      });
    }
  });
}

} // namespace

FailureOr<KvEvictSpec> KvEvictSpec::fromAttr(DictionaryAttr attr,
                                             EmitError emitError) {
  KvEvictSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  spec.readFrom(reader);
  reader.maybe("dims", spec.dims, 0, spec.headSize);
  reader.maybe("hadamard", spec.hadamard, 0, RopeAppendSpec::kMostHadamard);
  reader.read("interleaved", spec.interleaved);
  if (reader.bad())
    return failure(); // what follows asks the format
  if (spec.dims % 2)
    reader.fail("expects an even number of rotated dims, but got " +
                Twine(spec.dims));
  else if (spec.hadamard &&
           (!KvFormat::named(spec.kv).quantised() || !spec.dims ||
            !llvm::isPowerOf2_64(uint64_t(spec.hadamard)) ||
            spec.headSize % spec.hadamard))
    reader.fail("expects hadamard to be a power of two that divides the head, "
                "behind a rotation and with a cache in integers, but got " +
                Twine(spec.hadamard) + " with heads of " +
                Twine(spec.headSize) + " in " + spec.kv);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr KvEvictSpec::toAttr(MLIRContext *context) const {
  SpecWriter writer(context);
  addTo(writer);
  return writer
      .add("dims", dims)
      .add("hadamard", hadamard)
      .flag("interleaved", interleaved)
      .done();
}

FailureOr<KernelInterface>
KvEvictSpec::interface(const TargetProfile &profile, EmitError) const {
  KvFormat format = KvFormat::named(kv);
  KernelInterface interface;
  interface.key = llvm::formatv(
      "kv_evict heads {0}x{1} kv {2} capacity {3} layers {4} each {5} dims "
      "{6}{7} hadamard {8}",
      kvHeads, headSize, kv, capacity, layers, stride, dims,
      interleaved ? " interleaved" : "", hadamard);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("kv_evict_{0}x{1}", kvHeads, headSize).str(),
      interface.key);
  interface.workgroup = {uint32_t(kLanes), 1, 1};
  uint64_t bytes = format.sideBytes(capacity, kvHeads, headSize) +
                   uint64_t((layers - 1) * stride);
  interface.bindings = {{"control", Access::Read, StepControl::kBytes},
                        {"cells", Access::ReadWrite, bytes}};
  int64_t words =
      kvHeads * (format.headWords(headSize) + format.groups(headSize));
  if (dims) {
    RopeAppendSpec rotation;
    rotation.dims = dims, rotation.capacity = capacity;
    interface.bindings.push_back(
        {"table", Access::Read, rotation.tableBytes()});
    const int64_t lanes = lanesOf(*this), rounds = roundsOf(*this);
    words = kvHeads * lanes;
    // The heads, two reductions a round of words, and a transform.
    interface.sharedBytes =
        uint32_t(4 * kLanes * rounds * format.elementsPerWord());
    if (format.quantised())
      interface.sharedBytes += uint32_t(
          8 * kLanes * (format.groups(headSize) == 1 ? 1 : rounds));
    if (hadamard)
      interface.sharedBytes += uint32_t(4 * kLanes * format.elementsPerWord());
    if (profile.canShuffle())
      interface.subgroupSize = profile.subgroupSize;
  }
  interface.groups[0] = {uint32_t(llvm::divideCeilSigned(words, kLanes)), 0};
  interface.groups[1] = {uint32_t(kChains), 0};
  interface.groups[2] = {uint32_t(layers), 0};
  return interface;
}

void KvEvictSpec::build(KernelBuilder &b,
                        const KernelInterface &interface) const {
  SmallVector<Type> types{b.i32(), b.i32()};
  if (dims)
    types.push_back(RopeTable::elementType(b, interface, kTable));
  b.open(types);
  Builder builder(b, *this);
  if (dims)
    builder.turn(interface);
  else
    builder.move();
  b.close();
}

} // namespace mlir::llm
