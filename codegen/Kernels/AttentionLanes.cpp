// Attention with the lanes of one subgroup along the head. A workgroup serves
// one token and all query heads of one key head; a chunk is as many positions
// as there are lanes.
//
// Scores: every lane multiplies its part of the head, and a butterfly sums the
// parts of all the chunk's positions at once: after it, lane c holds the score
// of position c. That takes lanes - 1 exchanges for the whole chunk, where a
// reduction a position would take log₂(lanes) each.
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/KvFormat.h"

namespace mlir::llm {
namespace {

class LanesBuilder {
public:
  LanesBuilder(KernelBuilder &builder, const AttentionSpec &spec)
      : b(builder), spec(spec), format(KvFormat::named(spec.kv)),
        lanes(builder.target().subgroupSize),
        laneWords(format.headWords(spec.headSize) / lanes),
        laneNumbers(laneWords * format.elementsPerWord()),
        groupHeads(spec.heads / spec.kvHeads) {}

  void build();

private:
  /// The words of position `first + c`, this lane's part; zero where hidden.
  Values wordsAt(unsigned binding, Value position, Value visible);
  Values numbersOf(const Values &words);
  /// Sums over the lanes of the parts of positions [low, low + count) of the
  /// chunk, for every query head; lane l ends with position low + l % count.
  Values butterfly(int64_t low, int64_t count);

  KernelBuilder &b;
  const AttentionSpec &spec;
  KvFormat format;
  int64_t lanes, laneWords, laneNumbers, groupHeads;
  unsigned wide = 1; ///< words of one load
  Value lane, head;
  std::vector<Values> query; ///< [query head][number]
  Value chunk;
  Values visible; ///< of each position of the chunk
};

Values LanesBuilder::wordsAt(unsigned binding, Value position, Value seen) {
  int64_t headWords = format.headWords(spec.headSize);
  Value start =
      b.add(b.mul(b.add(b.mul(position, spec.kvHeads), head), headWords / wide),
            b.mul(lane, laneWords / wide));
  Values words;
  for (int64_t i = 0; i < laneWords / wide; ++i)
    for (Value word : b.unpack(b.load(binding, b.add(start, i))))
      words.push_back(b.select(seen, word, b.constant(0u)));
  return words;
}

Values LanesBuilder::numbersOf(const Values &words) {
  Values numbers;
  for (Value word : words)
    numbers.append(format.unpack(b, word));
  return numbers;
}

Values LanesBuilder::butterfly(int64_t low, int64_t count) {
  if (count == 1) {
    Value position = b.min(b.add(chunk, low), b.index(spec.capacity - 1));
    Values key =
        numbersOf(wordsAt(AttentionSlots::keys, position, visible[low]));
    Values parts;
    for (int64_t h = 0; h < groupHeads; ++h) {
      Value sum = b.mul(query[h][0], key[0]);
      for (int64_t i = 1; i < laneNumbers; ++i)
        sum = b.fma(query[h][i], key[i], sum);
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

void LanesBuilder::build() {
  wide = laneWords % 4 == 0 ? 4 : laneWords % 2 == 0 ? 2 : 1;
  Type word = wide > 1 ? b.vec(wide, b.i32()) : b.i32();
  b.open({b.f32(), b.i32(), word, word, b.f32()});
  lane = b.localId();
  head = b.groupId(0);
  Value token = b.groupId(1);
  AttentionRange range(b, spec, token, lanes);

  // Query head h of this key head starts at number (head·groupHeads + h)·E.
  Value row = b.mul(token, spec.heads * spec.headSize);
  auto place = [&](int64_t h, int64_t number) {
    Value queryHead = b.add(b.mul(head, groupHeads), h);
    return b.add(b.add(row, b.mul(queryHead, spec.headSize)),
                 b.add(b.mul(lane, laneNumbers), number));
  };
  for (int64_t h = 0; h < groupHeads; ++h) {
    query.emplace_back();
    for (int64_t i = 0; i < laneNumbers; ++i)
      query[h].push_back(b.load(AttentionSlots::q, place(h, i)));
  }

  // Carried, for every query head: maximum, this lane's share of the sum of
  // weights, and this lane's part of the weighted values.
  int64_t carriedOf = 2 + laneNumbers;
  Values initial;
  for (int64_t h = 0; h < groupHeads; ++h) {
    initial.push_back(b.constant(AttentionRange::kHidden));
    initial.append(1 + laneNumbers, b.constant(0.0f));
  }
  Values state = b.loop(
      range.first(), range.end(), b.index(lanes), initial,
      [&](Value start, ValueRange carried) {
        chunk = start;
        visible.clear();
        for (int64_t c = 0; c < lanes; ++c)
          visible.push_back(range.sees(b.add(chunk, c)));
        Value own = range.sees(b.add(chunk, lane));
        Values sums = butterfly(0, lanes);

        Values next(carried.begin(), carried.end());
        Values weights;
        for (int64_t h = 0; h < groupHeads; ++h) {
          Value score = range.score(sums[h], own);
          Value known = carried[h * carriedOf];
          Value most = b.max(known, b.reduce(score, unsigned(lanes),
                                             KernelBuilder::Reduction::Max));
          Value shrink = b.exp(b.sub(known, most));
          Value weight =
              b.select(own, b.exp(b.sub(score, most)), b.constant(0.0f));
          weights.push_back(weight);
          next[h * carriedOf] = most;
          next[h * carriedOf + 1] =
              b.fma(carried[h * carriedOf + 1], shrink, weight);
          for (int64_t i = 0; i < laneNumbers; ++i)
            next[h * carriedOf + 2 + i] =
                b.mul(carried[h * carriedOf + 2 + i], shrink);
        }
        for (int64_t c = 0; c < lanes; ++c) {
          Value position = b.min(b.add(chunk, c), b.index(spec.capacity - 1));
          Values numbers =
              numbersOf(wordsAt(AttentionSlots::values, position, visible[c]));
          for (int64_t h = 0; h < groupHeads; ++h) {
            Value weight = b.broadcast(weights[h], unsigned(c));
            for (int64_t i = 0; i < laneNumbers; ++i) {
              Value &sum = next[h * carriedOf + 2 + i];
              sum = b.fma(weight, numbers[i], sum);
            }
          }
        }
        return next;
      });

  for (int64_t h = 0; h < groupHeads; ++h) {
    Value total = b.reduce(state[h * carriedOf + 1], unsigned(lanes));
    Value inverse = b.div(b.constant(1.0f), total);
    for (int64_t i = 0; i < laneNumbers; ++i)
      b.store(b.mul(state[h * carriedOf + 2 + i], inverse), AttentionSlots::y,
              place(h, i));
  }
  b.close();
}

} // namespace

void buildAttentionLanes(KernelBuilder &builder, const AttentionSpec &spec) {
  LanesBuilder(builder, spec).build();
}

} // namespace mlir::llm
