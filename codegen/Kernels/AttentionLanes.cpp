// Attention with the lanes of one subgroup along the head. A workgroup serves
// the query heads of one key head for a few tokens; a chunk is as many
// positions as there are lanes.
//
// Scores: every lane multiplies its part of the head, and a butterfly sums the
// parts of all the chunk's positions at once: after it, lane c holds the score
// of position c. That takes lanes - 1 exchanges for the whole chunk, where a
// reduction a position would take log₂(lanes) each.
//
// Of codes of 8 bits lanes multiply codes, and lane c has the scales of position
// c: products are scaled behind the butterfly, weights before they are spread
// (of integers before they are rounded).
// With integer dot products, a lane multiplies whole words of a key, with zeros
// in the query where other lanes' numbers are; of values, codes of one number at
// four positions are put into a word.
#include "codegen/Kernels/AttentionIntegers.h"
#include "codegen/Kernels/AttentionLaneReads.h"
#include "codegen/Kernels/ByteDots.h"

namespace mlir::llm {
namespace {

/// Positions whose values are held at once; of integers those of a scale.
constexpr int64_t kBlock = 8;
static_assert(kBlock == kWeightBlock);

/// Numbers of a head that each lane has, and how many of them one access moves.
int64_t laneNumbers(KernelBuilder &b, const AttentionSpec &spec) {
  return spec.headSize / b.target().subgroupSize;
}
int64_t quadOf(int64_t numbers, const AttentionSpec &spec) {
  return numbers % 4 == 0 && spec.valueNumbers() % 4 == 0 ? 4 : 1;
}

class LanesBuilder final : public LaneReader {
public:
  LanesBuilder(KernelBuilder &builder, const AttentionSpec &spec)
      : LaneReader(builder, spec, laneNumbers(builder, spec)),
        quad(quadOf(numbers, spec)),
        touches(spec.touches(builder.target())),
        dots(spec.integers && hasByteDots(builder.target())),
        scaledLate(!spec.integers && format.bits == 8),
        scaledInLane(!spec.integers && format.bits == 4) {}

  void build();

private:
  Values round(Value start, ValueRange carried) override;
  Values sumChunk(Value start, ValueRange carried);
  Value total(Value share) override { return b.reduce(share, lanes); }
  void write(unsigned binding, Value start, ArrayRef<Value> values,
             int64_t length) override;

  /// What sums of integers are added with, over a block of positions: the codes
  /// of this lane's numbers, one position after another.
  void addBlock(int64_t block, MutableArrayRef<Value> next);
  void roundQuery(Values &numbers);
  /// Sums over the lanes of the parts of positions [low, low + count) of the
  /// chunk, for every query; lane l ends with position low + l % count.
  Values butterfly(int64_t low, int64_t count);
  Value spread(Value value, int64_t from);
  /// The slots of a chunk.
  void findSlots(Value chunkStart);

  int64_t quad; ///< numbers of one access to q, y and partial results
  bool touches; ///< the next chunk while one is computed
  Value firstLane;           ///< 0, but not a constant: see spread
  std::vector<Values> query; ///< [query][number], with dots [query][word]
  Values slots;              ///< of the chunk's positions
  Value ownSlot;             ///< of this lane's position
  bool dots;                 ///< integers by integer dot products
  /// Keys and values are multiplied as codes: to scale each number first would
  /// take loads, products and registers. Of codes with a scale a head lane c has the scales of position c, for its
  /// score and its weight. Other groups are of few lanes, which scale their
  /// parts of sums.
  bool scaledLate, scaledInLane;
  Values querySums;          ///< scaled in lanes: of this lane's part of each
  Values queryScales;        ///< of integers, of each query
  Values weights;            ///< of the chunk, of each query: of integers codes,
                             ///< with dots four to a word
  Values weightScales;       ///< of integers, of each query
};

Value LanesBuilder::spread(Value value, int64_t from) {
  // With a lane that a driver knows to be constant, some drivers broadcast by
  // a search for the first active lane; a shuffle is one instruction there.
  return lanes == 8 ? b.shuffle(value, b.add(firstLane, from))
                    : b.broadcast(value, unsigned(from));
}

void LanesBuilder::findSlots(Value chunkStart) {
  slots.clear();
  // In a tree every lane looks up one of them.
  Value own = spec.tree ? b.toI32(slotOf(b.add(chunkStart, lane))) : Value();
  for (int64_t c = 0; c < lanes; ++c)
    slots.push_back(own ? b.toIndex(spread(own, c))
                        : slotOf(b.add(chunkStart, c)));
  if (spec.integers || scaledLate)
    ownSlot = own ? b.toIndex(own) : slotOf(b.add(chunkStart, lane));
}

Values LanesBuilder::butterfly(int64_t low, int64_t count) {
  if (count == 1) {
    Values key = dots ? words(AttentionSlots::keys, slots[low], /*own=*/false)
                      : load(AttentionSlots::keys, slots[low]);
    Values parts;
    KvScale known;
    if (scaledInLane)
      known = scale(AttentionSlots::keys, slots[low]);
    for (auto [q, own] : llvm::enumerate(query)) {
      if (dots) {
        Value sum = byteDot(b, own[0], key[0]);
        for (size_t i = 1; i < key.size(); ++i)
          sum = b.add(sum, byteDot(b, own[i], key[i]));
        parts.push_back(sum);
        continue;
      }
      Value sum = b.mul(own[0], key[0]);
      for (int64_t i = 1; i < numbers; ++i)
        sum = b.fma(own[i], key[i], sum);
      if (scaledInLane)
        sum = b.fma(known.scale, sum, b.mul(known.minimum, querySums[q]));
      parts.push_back(sum);
    }
    return parts;
  }
  Values zeros = butterfly(low, count / 2);
  Values ones = butterfly(low + count / 2, count / 2);
  Value upper = b.less(b.index(0), b.bitAnd(lane, count / 2));
  Values sums;
  for (auto [zero, one] : llvm::zip_equal(zeros, ones)) {
    Value mine = b.select(upper, one, zero);
    Value other = b.select(upper, zero, one);
    sums.push_back(b.add(mine, b.shuffleXor(other, unsigned(count / 2))));
  }
  return sums;
}

Values LanesBuilder::round(Value start, ValueRange carried) {
  if (!touches)
    return sumChunk(start, carried);
  Value zero = b.bitAnd(touch(b.add(start, lanes)), b.toI32(firstLane));
  Values next = sumChunk(start, carried);
  next[1] = b.add(next[1], b.unsignedToF32(zero)); // a sum of weights, + 0
  return next;
}

Values LanesBuilder::sumChunk(Value start, ValueRange carried) {
  findSlots(start);
  Values sums = butterfly(0, lanes);
  Values next(carried.begin(), carried.end());
  weights.clear(), weightScales.clear();
  Value position = b.add(start, lane);
  KvScale keyScale, valueScale;
  if (spec.integers || scaledLate) {
    keyScale = scale(AttentionSlots::keys, ownSlot);
    valueScale = scale(AttentionSlots::values, ownSlot);
  }
  for (int64_t q = 0; q < queries(); ++q) {
    Value *own = &next[size_t(q * carriedOf())];
    Value seen = range.sees(limitOf(q), position), product = sums[q];
    if (spec.integers)
      product = b.mul(dots ? b.signedToF32(product) : product,
                      b.mul(queryScales[size_t(q)], keyScale.scale));
    if (scaledLate)
      product = b.mul(product, keyScale.scale);
    Value points = score(q, product, position, seen);
    Value most =
        b.max(own[0], b.reduce(points, lanes, KernelBuilder::Reduction::Max));
    Value shrink = b.exp(b.sub(own[0], most));
    Value weight = b.select(seen, b.exp(b.sub(points, most)), b.constant(0.0f));
    own[0] = most;
    own[1] = b.fma(own[1], shrink, weight);
    for (int64_t i = 0; i < numbers; ++i)
      own[2 + i] = b.mul(own[2 + i], shrink);
    if (spec.integers) {
      const RoundedWeight rounded(b, seen, weight, valueScale.scale);
      weightScales.push_back(rounded.scale);
      weight = dots ? b.reduce(b.shl(rounded.code,
                                     b.toI32(b.mul(b.rem(lane, 4), 8))),
                               4)
                    : b.unsignedToF32(rounded.code);
    }
    if (scaledLate) // what is not seen may have any scale
      weight = b.select(seen, b.mul(weight, valueScale.scale), b.constant(0.0f));
    weights.push_back(weight);
  }
  if (spec.integers) {
    for (int64_t block = 0; block < lanes; block += kBlock)
      addBlock(block, next);
    return next;
  }
  for (int64_t block = 0; block < lanes; block += kBlock) {
    int64_t size = std::min<int64_t>(kBlock, lanes - block);
    std::vector<Values> held;
    std::vector<KvScale> known(static_cast<size_t>(size));
    for (int64_t c = 0; c < size; ++c) {
      held.push_back(words(AttentionSlots::values, slots[block + c], /*own=*/true));
      if (scaledInLane)
        known[size_t(c)] = scale(AttentionSlots::values, slots[block + c]);
    }
    Values least(static_cast<size_t>(queries())); // what minima give to every number
    for (int64_t c = 0; c < size; ++c) {
      const Values value = unpack(held[size_t(c)]); // of one position at a time
      for (int64_t q = 0; q < queries(); ++q) {
        Value weight = spread(weights[q], block + c);
        if (scaledInLane) {
          const auto [scale, minimum] = known[size_t(c)];
          Value &sum = least[size_t(q)];
          sum = sum ? b.fma(weight, minimum, sum) : b.mul(weight, minimum);
          weight = b.mul(weight, scale);
        }
        for (int64_t i = 0; i < numbers; ++i) {
          Value &sum = next[q * carriedOf() + 2 + i];
          sum = b.fma(weight, value[i], sum);
        }
      }
    }
    for (int64_t q = 0; scaledInLane && q < queries(); ++q)
      for (int64_t i = 0; i < numbers; ++i) {
        Value &sum = next[q * carriedOf() + 2 + i];
        sum = b.add(sum, least[size_t(q)]);
      }
  }
  return next;
}

void LanesBuilder::addBlock(int64_t block, MutableArrayRef<Value> next) {
  // [position][number] as f32, or with dots [four positions][number] as words.
  std::vector<Values> codes;
  for (int64_t c = 0; c < kBlock; ++c) {
    if (!dots) {
      codes.push_back(load(AttentionSlots::values, slots[block + c]));
      continue;
    }
    Values own = words(AttentionSlots::values, slots[block + c], /*own=*/true);
    if (c % 4 == 0)
      codes.emplace_back(size_t(numbers));
    for (int64_t i = 0; i < numbers; ++i) {
      Value byte = b.shl(b.bits(own[size_t(i / 4)], unsigned(i % 4 * 8), 8),
                         c % 4 * 8);
      Value &word = codes.back()[size_t(i)];
      word = word ? b.bitOr(word, byte) : byte;
    }
  }
  const int64_t step = kBlock / int64_t(codes.size());
  for (int64_t q = 0; q < queries(); ++q) {
    Values own;
    for (int64_t c = 0; c < kBlock; c += step)
      own.push_back(spread(weights[size_t(q)], block + c));
    Value scale = spread(weightScales[size_t(q)], block);
    for (int64_t i = 0; i < numbers; ++i) {
      Value sum;
      for (auto [weight, code] : llvm::zip_equal(own, codes)) {
        if (dots) {
          Value part = byteDot(b, weight, code[size_t(i)]);
          sum = sum ? b.add(sum, part) : part;
        } else {
          sum = sum ? b.fma(weight, code[size_t(i)], sum)
                    : b.mul(weight, code[size_t(i)]);
        }
      }
      Value &into = next[size_t(q * carriedOf() + 2 + i)];
      into = b.fma(scale, dots ? b.signedToF32(sum) : sum, into);
    }
  }
}

void LanesBuilder::roundQuery(Values &own) {
  const IntegerScale rounding = headScale(b, own, lanes);
  queryScales.push_back(rounding.scale);
  if (!dots) {
    for (Value &number : own)
      number = codeOf(b, rounding, number);
    return;
  }
  Values packed;
  for (int64_t i = 0; i < numbers; i += 4)
    packed.push_back(packedCodes(
        b, rounding,
        ValueRange(own).slice(size_t(i), size_t(std::min<int64_t>(4, numbers)))));
  if (loads.sharers > 1)
    packed[0] = b.shl(packed[0], before());
  own = packed;
}

void LanesBuilder::write(unsigned binding, Value start, ArrayRef<Value> values,
                         int64_t length) {
  Value first = b.mul(lane, numbers);
  Value place = b.div(b.add(start, first), quad);
  for (int64_t i = 0; i < numbers / quad; ++i) {
    const auto store = [&] {
      b.store(quad == 1 ? values[i] : b.pack(values.slice(i * 4, 4)), binding,
              b.add(place, i));
    };
    if (length == spec.headSize)
      store();
    else
      b.when(b.less(b.add(first, i * quad), length), store);
  }
}

void LanesBuilder::build() {
  firstLane = b.toIndex(b.shl(b.shr(b.toI32(lane), 3), 3));
  for (int64_t q = 0; q < queries(); ++q) {
    query.emplace_back();
    Value place =
        b.div(b.add(start(q, spec.headSize), b.mul(lane, numbers)), quad);
    for (int64_t i = 0; i < numbers / quad; ++i)
      query[q].append(b.unpack(b.load(AttentionSlots::q, b.add(place, i))));
    if (spec.integers)
      roundQuery(query[q]);
    if (scaledInLane) {
      Value sum = query[q][0];
      for (int64_t i = 1; i < numbers; ++i)
        sum = b.add(sum, query[q][i]);
      querySums.push_back(sum);
    }
  }
  finish();
}

} // namespace

void buildAttentionLanes(KernelBuilder &b, const AttentionSpec &spec) {
  Type word = LaneLoads(b, spec).type(b), number = b.f32();
  if (int64_t quad = quadOf(laneNumbers(b, spec), spec); quad > 1)
    number = b.vec(quad, number);
  SmallVector<Type> types{number, b.i32(), word, word, number};
  if (spec.parts)
    types.append({number, b.vec(2, b.f32())});
  if (spec.tree)
    types.push_back(b.i32());
  if (spec.bias)
    types.push_back(b.f32());
  if (spec.cache && KvFormat::named(spec.kv).quantised())
    types.push_back(word);
  b.open(types);
  LanesBuilder(b, spec).build();
  b.close();
}

} // namespace mlir::llm
