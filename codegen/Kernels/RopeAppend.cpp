#include "codegen/Kernels/RopeAppend.h"

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace mlir::llm {
namespace {

constexpr uint32_t kLanes = 64;

/// Positions of the bindings, which `fused` and `dims` shift.
struct Slots {
  unsigned q = 0, k, v, table, control, out, keys, values;
  explicit Slots(const RopeAppendSpec &spec) {
    k = spec.fused ? q : q + 1;
    v = spec.fused ? q : q + 2;
    table = v + 1;
    control = spec.dims ? table + 1 : table;
    out = control + 1;
    keys = out + 1;
    values = keys + 1;
  }
};

} // namespace

std::vector<float> ropeTable(llvm::ArrayRef<double> frequencies,
                             int64_t capacity, double amplitude) {
  int64_t blocks =
      (capacity + RopeAppendSpec::kTableRows - 1) / RopeAppendSpec::kTableRows;
  std::vector<float> table;
  table.reserve((RopeAppendSpec::kTableRows + blocks) * frequencies.size() * 2);
  auto addRow = [&](double position, double scale) {
    for (double frequency : frequencies) {
      table.push_back(float(std::cos(position * frequency) * scale));
      table.push_back(float(std::sin(position * frequency) * scale));
    }
  };
  for (int64_t row = 0; row < RopeAppendSpec::kTableRows; ++row)
    addRow(double(row), amplitude);
  for (int64_t block = 0; block < blocks; ++block)
    addRow(double(block * RopeAppendSpec::kTableRows), 1);
  return table;
}

uint64_t RopeAppendSpec::tableBytes() const {
  uint64_t blocks = (capacity + kTableRows - 1) / kTableRows;
  return (kTableRows + blocks) * uint64_t(dims / 2) * 8;
}

FailureOr<RopeAppendSpec> RopeAppendSpec::fromAttr(DictionaryAttr attr,
                                                   EmitError emitError) {
  RopeAppendSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.read("kv_heads", spec.kvHeads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.read("kv", spec.kv);
  spec.dims = spec.headSize;
  reader.maybe("dims", spec.dims, 0);
  reader.read("interleaved", spec.interleaved);
  reader.read("fused", spec.fused);
  reader.read("tree", spec.tree);
  if (!KvFormat::known(spec.kv))
    reader.fail("expects kv f16 or f32, but got '" + spec.kv + "'");
  else if (spec.headSize % KvFormat::named(spec.kv).elementsPerWord())
    reader.fail("expects an even head size with an f16 cache, but got " +
                Twine(spec.headSize));
  if (spec.dims % 2 || spec.dims > spec.headSize)
    reader.fail("expects an even number of rotated dims of at most " +
                Twine(spec.headSize) + ", but got " + Twine(spec.dims));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr RopeAppendSpec::toAttr(MLIRContext *context) const {
  NamedAttrList members(SpecWriter(context)
                            .add("heads", heads)
                            .add("kv_heads", kvHeads)
                            .add("head_size", headSize)
                            .add("capacity", capacity)
                            .add("kv", StringRef(kv))
                            .flag("interleaved", interleaved)
                            .flag("fused", fused)
                            .flag("tree", tree)
                            .done());
  if (dims != headSize) // zero is a choice here, not a default
    members.set("dims", Builder(context).getI64IntegerAttr(dims));
  return members.getDictionary(context);
}

FailureOr<KernelInterface>
RopeAppendSpec::interface(const TargetProfile &profile,
                          EmitError emitError) const {
  KvFormat format = KvFormat::named(kv);
  KernelInterface interface;
  interface.key = llvm::formatv(
      "rope_append heads {0}/{1}x{2} dims {3}{4}{5} kv {6} "
      "capacity {7}{8}",
      heads, kvHeads, headSize, dims, interleaved ? " interleaved" : "",
      fused ? " fused" : "", kv, capacity, tree ? " tree" : "");
  interface.name = KernelInterface::nameFor(
      llvm::formatv("rope_append_{0}x{1}", heads, headSize).str(),
      interface.key);
  interface.workgroup = {kLanes, 1, 1};
  uint64_t queryBytes = uint64_t(heads) * headSize * 4,
           keyBytes = uint64_t(kvHeads) * headSize * 4;
  uint64_t cacheBytes =
      uint64_t(capacity) * kvHeads * format.headWords(headSize) * 4;
  auto &bindings = interface.bindings;
  if (fused) {
    bindings.push_back({"qkv", Access::Read, queryBytes + 2 * keyBytes, true});
  } else {
    bindings.push_back({"q", Access::Read, queryBytes, true});
    bindings.push_back({"k", Access::Read, keyBytes, true});
    bindings.push_back({"v", Access::Read, keyBytes, true});
  }
  if (dims)
    bindings.push_back({"table", Access::Read, tableBytes()});
  bindings.push_back({"control", Access::Read, StepControl::kBytes});
  bindings.push_back({"y", Access::Write, queryBytes, true});
  bindings.push_back({"keys", Access::Write, cacheBytes});
  bindings.push_back({"values", Access::Write, cacheBytes});
  uint64_t items = uint64_t(heads + 2 * kvHeads) * format.headWords(headSize);
  interface.groups[0] = {uint32_t((items + kLanes - 1) / kLanes), 0};
  interface.groups[1] = {1, 1};
  return interface;
}

void RopeAppendSpec::build(KernelBuilder &b,
                           const KernelInterface &interface) const {
  Slots slots(*this);
  KvFormat format = KvFormat::named(kv);
  SmallVector<Type> types(interface.bindings.size(), b.f32());
  if (dims)
    types[slots.table] = b.vec(2, b.f32());
  types[slots.control] = types[slots.keys] = types[slots.values] = b.i32();
  b.open(types);

  // One lane makes one cache word's worth (one or two numbers) of one head;
  // heads are counted through q, k and v.
  int64_t words = format.headWords(headSize), pack = format.elementsPerWord();
  Value item = b.globalId(0), token = b.groupId(1);
  Value head = b.div(item, words), word = b.rem(item, words);
  StepControl control(b, slots.control);
  Value slot = b.add(control.base(), token);

  int64_t queryWidth = heads * headSize, keyWidth = kvHeads * headSize;
  int64_t fusedWidth = queryWidth + 2 * keyWidth;

  // Padding rows may lie past the context; their rotation does not matter, but
  // its address does.
  Value position = tree ? b.add(control.base(), control.depth(token)) : slot;
  position = b.min(position, b.index(capacity - 1));
  Value lowRow = b.mul(b.rem(position, kTableRows), dims / 2);
  Value highRow =
      b.mul(b.add(b.div(position, kTableRows), kTableRows), dims / 2);

  /// The numbers 2·word … of the head that starts at `start` of `binding`.
  auto take = [&](unsigned binding, Value start) {
    Values numbers;
    for (int64_t i = 0; i < pack; ++i)
      numbers.push_back(
          b.load(binding, b.add(start, b.add(b.mul(word, pack), i))));
    return numbers;
  };
  /// The same, rotated.
  auto rotate = [&](unsigned binding, Value start) {
    Values numbers = take(binding, start);
    if (!dims)
      return numbers;
    for (int64_t i = 0; i < pack; ++i) {
      Value element = b.add(b.mul(word, pack), i);
      // The pair's index, whether this is its first number, the other's place.
      Value pair, first, other;
      if (interleaved) {
        pair = b.div(element, 2);
        first = b.equal(b.rem(element, 2), b.index(0));
        other = b.bitXor(element, b.index(1));
      } else {
        pair = b.rem(element, dims / 2);
        first = b.less(element, dims / 2);
        other = b.select(
            first, b.add(element, dims / 2),
            b.sub(b.max(element, b.index(dims / 2)), b.index(dims / 2)));
      }
      Value inside = b.less(element, dims);
      pair = b.select(inside, pair, b.index(0));
      Value low = b.load(slots.table, b.add(lowRow, pair));
      Value high = b.load(slots.table, b.add(highRow, pair));
      Value c0 = b.extract(low, 0), s0 = b.extract(low, 1);
      Value c1 = b.extract(high, 0), s1 = b.extract(high, 1);
      Value cosine = b.sub(b.mul(c1, c0), b.mul(s1, s0));
      Value sine = b.add(b.mul(s1, c0), b.mul(c1, s0));
      sine = b.select(first, b.neg(sine), sine);
      Value partner =
          b.load(binding, b.add(start, b.select(inside, other, element)));
      Value turned = b.add(b.mul(numbers[i], cosine), b.mul(partner, sine));
      numbers[i] = b.select(inside, turned, numbers[i]);
    }
    return numbers;
  };

  b.when(b.less(head, heads), [&] {
    Value row = b.mul(token, fused ? fusedWidth : queryWidth);
    Values numbers = rotate(slots.q, b.add(row, b.mul(head, headSize)));
    Value out = b.add(b.mul(token, queryWidth), b.mul(head, headSize));
    for (int64_t i = 0; i < pack; ++i)
      b.store(numbers[i], slots.out, b.add(out, b.add(b.mul(word, pack), i)));
  });

  // Padding rows never reach the cache, and no row lands past its end.
  Value valid =
      b.bitAnd(b.less(token, control.count()), b.less(slot, capacity));
  auto append = [&](int64_t firstHead, unsigned source, unsigned target,
                    int64_t offset, bool rotated) {
    Value inside = b.bitAnd(b.bitAnd(b.less(b.index(firstHead - 1), head),
                                     b.less(head, firstHead + kvHeads)),
                            valid);
    b.when(inside, [&] {
      Value own = b.sub(head, b.index(firstHead));
      Value start = fused ? b.add(b.add(b.mul(token, fusedWidth), offset),
                                  b.mul(own, headSize))
                          : b.add(b.mul(token, keyWidth), b.mul(own, headSize));
      Values numbers = rotated ? rotate(source, start) : take(source, start);
      Value place = b.mul(b.add(b.mul(slot, kvHeads), own), words);
      b.store(format.pack(b, numbers), target, b.add(place, word));
    });
  };
  append(heads, slots.k, slots.keys, queryWidth, /*rotated=*/true);
  append(heads + kvHeads, slots.v, slots.values, queryWidth + keyWidth,
         /*rotated=*/false);
  b.close();
}

} // namespace mlir::llm
