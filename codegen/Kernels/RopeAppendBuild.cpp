#include "codegen/Kernels/RopeAppendBuild.h"

#include "codegen/Kernels/LaneExchange.h"
#include "codegen/Kernels/RopeTable.h"
#include "codegen/Kernels/StepControl.h"
#include <cmath>

namespace mlir::llm {

int64_t ropeAppendLanes(const RopeAppendSpec &spec, int64_t workgroup) {
  KvFormat format = KvFormat::named(spec.kv);
  int64_t words = format.headWords(spec.headSize);
  return format.quantised()
             ? std::min(int64_t(llvm::PowerOf2Ceil(uint64_t(words))), workgroup)
             : words;
}

namespace {

constexpr int64_t kLanes = 64; ///< of a workgroup

class Builder {
public:
  Builder(KernelBuilder &builder, const RopeAppendSpec &spec,
          const KernelInterface &interface);
  /// A lane makes one word of a head, of as few numbers as a word has.
  void appendNumbers();
  /// A few lanes make a head: they find its scales together.
  void appendCodes();

private:
  /// Numbers of word `word` of the head that starts at `start` of `binding`.
  Values take(unsigned binding, Value start, Value word);
  /// The same of a value; zeros where it is shorter than a head.
  Values takeValue(Value start, Value word);
  /// The same, rotated.
  Values rotate(unsigned binding, Value start, Value word);
  /// The Walsh-Hadamard transform across a head's lanes, of queries and keys.
  Values transform(Values numbers);
  /// The numbers of any head, which are counted through q, k and v.
  Values ofAnyHead(Value word);
  void storeQuery(const Values &numbers, Value word);
  /// Calls `store` with each side's binding and head, where this lane has one
  /// that goes to the cache.
  void whenCached(function_ref<void(unsigned side, Value head)> store);
  /// First word of head `own` of this token's slot.
  Value place(Value own) {
    Value inside = s.cache ? b.sub(b.max(slot, partBegin), partBegin) : slot;
    return b.mul(b.add(b.mul(inside, s.kvHeads), own), words);
  }
  void storeScale(unsigned side, Value own, Value group, Value scale);
  /// Whether this lane has a query, and is the one to write it.
  Value hasQuery() {
    Value is = b.less(head, s.heads);
    return s.cache ? b.bitAnd(is, b.equal(b.groupId(2), b.index(0))) : is;
  }

  KernelBuilder &b;
  const RopeAppendSpec &s;
  RopeAppendSlots slots;
  KvFormat format;
  int64_t words, pack, lanes, queryWidth, keyWidth, valueWidth, fusedWidth;
  Value token, head, lane, slot, valid;
  std::optional<RopeTable> table; ///< none where nothing is rotated
  Value partBegin; ///< first slot of the part of the cache
  Value exchanged; ///< shared: one number of each lane after another
};

Builder::Builder(KernelBuilder &builder, const RopeAppendSpec &spec,
                 const KernelInterface &interface)
    : b(builder), s(spec), slots(spec), format(KvFormat::named(spec.kv)),
      words(format.headWords(spec.headSize)), pack(format.elementsPerWord()),
      lanes(ropeAppendLanes(spec, interface.workgroup[0])),
      queryWidth(spec.heads * spec.headSize),
      keyWidth(spec.kvHeads * spec.headSize),
      valueWidth(spec.kvHeads * spec.valueNumbers()),
      fusedWidth(queryWidth + 2 * keyWidth) {
  Value item = b.globalId(0);
  token = b.groupId(1), head = b.div(item, lanes), lane = b.rem(item, lanes);
  StepControl control(b, slots.control);
  slot = b.add(control.base(), token);
  // Padding rows may lie past the context; their rotation does not matter, but
  // its address does.
  Value position = s.tree ? b.add(control.base(), control.depth(token)) : slot;
  position = b.min(position, b.index(s.capacity - 1));
  if (s.dims)
    table.emplace(b, s, interface, slots.table, position);
  // Padding rows never reach the cache, and no row lands past its end.
  valid = b.bitAnd(b.less(token, control.count()), b.less(slot, s.capacity));
  if (s.cache) {
    partBegin = b.mul(b.groupId(2), s.cache.part);
    Value inside = b.bitAnd(b.less(partBegin, b.add(slot, 1)),
                            b.less(slot, b.add(partBegin, s.cache.part)));
    valid = b.bitAnd(valid, inside);
  }
}

void Builder::storeScale(unsigned side, Value own, Value group, Value scale) {
  Value all = b.add(b.mul(slot, s.kvHeads), own);
  if (!s.cache) {
    Value first = format.scaleWord(b, all, s.capacity, s.kvHeads, s.headSize);
    b.store(scale, side, b.add(first, group));
    return;
  }
  const auto behindKeys = int64_t(
      format.scaleBytes(s.capacity, s.kvHeads, s.headSize) / 4);
  Value place = b.add(b.mul(all, format.groups(s.headSize)), group);
  b.store(scale, slots.scales,
          b.add(place, side == slots.keys ? 0 : behindKeys));
}

Values Builder::take(unsigned binding, Value start, Value word) {
  Values numbers;
  for (int64_t i = 0; i < pack; ++i)
    numbers.push_back(
        b.load(binding, b.add(start, b.add(b.mul(word, pack), i))));
  return numbers;
}

Values Builder::takeValue(Value start, Value word) {
  if (!s.valueSize)
    return take(slots.v, start, word);
  Values numbers;
  for (int64_t i = 0; i < pack; ++i) {
    Value element = b.add(b.mul(word, pack), i);
    Value number = b.load(
        slots.v, b.add(start, b.min(element, b.index(s.valueSize - 1))));
    numbers.push_back(b.select(b.less(element, s.valueSize), number,
                               b.constant(0.0f)));
  }
  return numbers;
}

Values Builder::rotate(unsigned binding, Value start, Value word) {
  Values numbers = take(binding, start, word);
  if (!s.dims)
    return numbers;
  for (int64_t i = 0; i < pack; ++i) {
    Value element = b.add(b.mul(word, pack), i);
    RopePair pair = ropePair(b, element, s.dims, s.interleaved);
    Value partner = b.load(binding, b.add(start, pair.partner));
    Value turned = table->turn(numbers[i], partner, pair.first, pair.index);
    numbers[i] = b.select(pair.inside, turned, numbers[i]);
  }
  return numbers;
}

void Builder::storeQuery(const Values &numbers, Value word) {
  Value out = b.add(b.mul(token, queryWidth), b.mul(head, s.headSize));
  for (int64_t i = 0; i < pack; ++i)
    b.store(numbers[i], slots.out, b.add(out, b.add(b.mul(word, pack), i)));
}

void Builder::whenCached(function_ref<void(unsigned, Value)> store) {
  for (auto [side, first] : {std::pair(slots.keys, s.heads),
                             std::pair(slots.values, s.heads + s.kvHeads)}) {
    Value behind = first ? b.less(b.index(first - 1), head) : Value();
    Value inside = b.less(head, first + s.kvHeads);
    inside = b.bitAnd(behind ? b.bitAnd(behind, inside) : inside, valid);
    b.when(inside, [&, side = side, first = first] {
      store(side, b.sub(head, b.index(first)));
    });
  }
}

void Builder::appendNumbers() {
  if (s.heads)
    b.when(hasQuery(), [&] {
      Value row = b.mul(token, s.fused ? fusedWidth : queryWidth);
      storeQuery(rotate(slots.q, b.add(row, b.mul(head, s.headSize)), lane),
                 lane);
    });
  whenCached([&](unsigned side, Value own) {
    bool key = side == slots.keys;
    int64_t offset = queryWidth + (key ? 0 : keyWidth);
    Value row = s.fused ? b.add(b.mul(token, fusedWidth), offset)
                        : b.mul(token, key ? keyWidth : valueWidth);
    Value start =
        b.add(row, b.mul(own, key ? s.headSize : s.valueNumbers()));
    Values numbers =
        key ? rotate(slots.k, start, lane) : takeValue(start, lane);
    b.store(format.pack(b, numbers), side, b.add(place(own), lane));
  });
}

Values Builder::ofAnyHead(Value word) {
  Value isQuery = b.less(head, s.heads);
  Value turned = b.less(head, s.heads + s.kvHeads);
  // Lanes past the last head do its work once more, for nobody.
  Value last = b.min(head, b.index(s.heads + 2 * s.kvHeads - 1));
  if (s.fused) {
    Value start =
        b.add(b.mul(token, fusedWidth), b.mul(last, s.headSize));
    return b.choose(
        turned, [&] { return rotate(slots.q, start, word); },
        [&] { return take(slots.q, start, word); });
  }
  auto startOf = [&](int64_t first, int64_t width, int64_t numbers) {
    return b.add(b.mul(token, width),
                 b.mul(b.sub(last, b.index(first)), numbers));
  };
  return b.choose(
      isQuery,
      [&] {
        return rotate(slots.q, startOf(0, queryWidth, s.headSize), word);
      },
      [&] {
        return b.choose(
            turned,
            [&] {
              return rotate(slots.k, startOf(s.heads, keyWidth, s.headSize),
                            word);
            },
            [&] {
              return takeValue(startOf(s.heads + s.kvHeads, valueWidth,
                                       s.valueNumbers()),
                               word);
            });
      });
}

Values Builder::transform(Values numbers) {
  const Values before = numbers;
  transformLanes(b, numbers, s.hadamard, lane, kLanes, exchanged);
  Value turned = b.less(head, s.heads + s.kvHeads);
  Value unit = b.constant(float(1 / std::sqrt(double(s.hadamard))));
  for (auto [number, plain] : llvm::zip_equal(numbers, before))
    number = b.select(turned, b.mul(number, unit), plain);
  return numbers;
}

void Builder::appendCodes() {
  const int64_t rounds = (words + lanes - 1) / lanes;
  const int64_t groups = format.groups(s.headSize);
  // Lanes past the last word read it once more and have zeros, which change no
  // scale of a head, and are groups of their own where there are more.
  std::vector<Values> numbers;
  Values wordOf; // of each round
  HeadScales scales(b, format, lanes, words, groups);
  for (int64_t r = 0; r < rounds; ++r) {
    wordOf.push_back(b.min(b.add(lane, r * lanes), b.index(words - 1)));
    numbers.push_back(ofAnyHead(wordOf[r]));
    if (words % lanes)
      for (Value &number : numbers[r])
        number = b.select(b.less(b.add(lane, r * lanes), words), number,
                          b.constant(0.0f));
    if (s.hadamard)
      numbers[r] = transform(numbers[r]);
    scales.add(numbers[r]);
  }
  const Values scaleWords = scales.done();
  for (int64_t r = 0; r < rounds; ++r) {
    Value scale = scaleWords[r], word = wordOf[r];
    Value own = b.less(b.add(lane, r * lanes), words);
    if (s.heads)
      b.when(b.bitAnd(own, hasQuery()),
             [&] { storeQuery(numbers[r], word); });
    b.when(own, [&] {
      whenCached([&](unsigned side, Value cached) {
        b.store(format.encode(b, numbers[r], scale), side,
                b.add(place(cached), word));
        b.when(b.equal(b.rem(word, words / groups), b.index(0)), [&] {
          storeScale(side, cached, b.div(word, words / groups), scale);
        });
      });
    });
  }
}

} // namespace

void buildRopeAppend(KernelBuilder &b, const RopeAppendSpec &spec,
                     const KernelInterface &interface) {
  RopeAppendSlots slots(spec);
  SmallVector<Type> types(interface.bindings.size(), b.f32());
  if (spec.dims)
    types[slots.table] = RopeTable::elementType(b, interface, slots.table);
  types[slots.control] = types[slots.keys] = types[slots.values] = b.i32();
  if (slots.scales < types.size())
    types[slots.scales] = b.i32();
  b.open(types);
  Builder builder(b, spec, interface);
  if (KvFormat::named(spec.kv).quantised())
    builder.appendCodes();
  else
    builder.appendNumbers();
  b.close();
}

} // namespace mlir::llm
