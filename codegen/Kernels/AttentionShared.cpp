// Attention that exchanges through shared memory: for targets whose subgroups
// are unknown, and heads that a subgroup does not divide. A workgroup serves
// the query heads of one key head; a chunk is as many positions as there are
// lanes. Scores: lane = position of the chunk, the queries in shared memory.
// Values: lane = words of the head, the chunk's weights in shared memory. Of
// integers it multiplies codes in f32, which is exact (Attention.h).
#include "codegen/Kernels/AttentionBuild.h"
#include "codegen/Kernels/AttentionIntegers.h"

namespace mlir::llm {
namespace {

int64_t laneWords(const AttentionSpec &spec, int64_t lanes) {
  return (KvFormat::named(spec.kv).headWords(spec.headSize) + lanes - 1) /
         lanes; // lane, lane + lanes, …
}
int64_t laneNumbers(const AttentionSpec &spec, int64_t lanes) {
  return laneWords(spec, lanes) * KvFormat::named(spec.kv).elementsPerWord();
}

class SharedBuilder final : public AttentionBuilder {
public:
  SharedBuilder(KernelBuilder &builder, const AttentionSpec &spec,
                int64_t lanes)
      : AttentionBuilder(builder, spec, lanes, laneNumbers(spec, lanes)),
        lanes(lanes), words(format.headWords(spec.headSize)),
        pack(format.elementsPerWord()), lane(builder.localId()),
        query(builder.shared(builder.f32(), queries() * spec.headSize)),
        weights(builder.shared(builder.f32(), queries() * lanes)) {
    if (spec.integers)
      weightScales =
          builder.shared(builder.f32(), queries() * lanes / kWeightBlock);
  }

  void build();

private:
  Values round(Value start, ValueRange carried) override;
  Value total(Value share) override { return b.reduce(share, unsigned(lanes)); }
  void write(unsigned binding, Value start, ArrayRef<Value> values,
             int64_t length) override;
  Value wordAt(unsigned binding, Value slot, Value word);
  /// Of the group that `word` of the head lies in.
  KvScale scaleAt(unsigned binding, Value slot, Value word);
  /// What the numbers of a word are read with: of integers they stay codes.
  KvScale readScaleAt(unsigned binding, Value slot, Value word) {
    return spec.integers ? KvScale() : scaleAt(binding, slot, word);
  }
  /// `sums`, and the values at [begin, end) times the weights of the chunk.
  Values addValues(Value chunkStart, Value begin, Value end, ValueRange sums);
  /// The same of integers, a block of one scale after another.
  Values addBlocks(Value chunkStart, Value end, ValueRange sums);

  int64_t lanes, words, pack;
  Value lane, query, weights;
  Value weightScales; ///< of integers
  Values queryScales; ///< of integers, of each query
};

Value SharedBuilder::wordAt(unsigned binding, Value slot, Value word) {
  Value start = b.mul(b.add(b.mul(slot, spec.kvHeads), keyHead), words);
  return b.load(binding, b.add(start, word));
}

KvScale SharedBuilder::scaleAt(unsigned binding, Value slot, Value word) {
  if (!format.quantised())
    return {};
  Value group = b.div(word, words / format.groups(spec.headSize));
  return format.scaleOf(
      b, b.load(scalesOf(binding), scaleWord(binding, slot, group)));
}

Values SharedBuilder::round(Value chunkStart, ValueRange carried) {
  Value own = b.add(chunkStart, lane);
  Values products =
      b.loop(0, words, 1, Values(queries(), b.constant(0.0f)),
             [&](Value word, ValueRange sums) {
               Value slot = slotOf(own);
               Value bits = wordAt(AttentionSlots::keys, slot, word);
               KvScale scale = readScaleAt(AttentionSlots::keys, slot, word);
               Values next(sums.begin(), sums.end());
               for (auto [i, number] :
                    llvm::enumerate(format.unpack(b, bits, scale)))
                 for (int64_t q = 0; q < queries(); ++q)
                   next[q] = b.fma(
                       b.load(query, b.add(b.mul(word, pack),
                                           q * spec.headSize + int64_t(i))),
                       number, next[q]);
               return next;
             });

  KvScale keyScale, valueScale;
  if (spec.integers) {
    keyScale = scaleAt(AttentionSlots::keys, slotOf(own), b.index(0));
    valueScale = scaleAt(AttentionSlots::values, slotOf(own), b.index(0));
  }
  Values next(carried.begin(), carried.end()), shares, scales, shrunk;
  for (int64_t q = 0; q < queries(); ++q) {
    Value *state = &next[size_t(q * carriedOf())];
    Value seen = range.sees(limitOf(q), own);
    Value product = products[q];
    if (spec.integers)
      product = b.mul(product,
                      b.mul(queryScales[size_t(q)], keyScale.scale));
    Value points = score(q, product, own, seen);
    Value most = b.max(state[0], b.reduce(points, unsigned(lanes),
                                          KernelBuilder::Reduction::Max));
    Value shrink = b.exp(b.sub(state[0], most));
    Value weight = b.select(seen, b.exp(b.sub(points, most)), b.constant(0.0f));
    shares.push_back(weight);
    if (spec.integers) {
      const RoundedWeight rounded(b, seen, weight, valueScale.scale);
      shares.back() = b.unsignedToF32(rounded.code);
      scales.push_back(rounded.scale);
    }
    state[0] = most;
    state[1] = b.fma(state[1], shrink, weight);
    for (int64_t i = 0; i < numbers; ++i)
      shrunk.push_back(b.mul(state[2 + i], shrink));
  }
  b.barrier(); // the last chunk's weights have been read
  for (auto [q, weight] : llvm::enumerate(shares))
    b.store(weight, weights, b.add(lane, int64_t(q) * lanes));
  for (auto [q, scale] : llvm::enumerate(scales))
    b.when(b.equal(b.rem(lane, kWeightBlock), b.index(0)), [&, &q = q, &scale = scale] {
      b.store(scale, weightScales,
              b.add(b.div(lane, kWeightBlock), int64_t(q) * (lanes / kWeightBlock)));
    });
  b.barrier();

  // Past the last token's limit nothing weighs anything.
  Value last = b.min(b.add(chunkStart, lanes), b.add(readable(), 1));
  Values sums = spec.integers ? addBlocks(chunkStart, last, shrunk)
                              : addValues(chunkStart, chunkStart, last, shrunk);
  for (int64_t q = 0; q < queries(); ++q)
    for (int64_t i = 0; i < numbers; ++i)
      next[q * carriedOf() + 2 + i] = sums[q * numbers + i];
  return next;
}

Values SharedBuilder::addBlocks(Value chunkStart, Value end, ValueRange sums) {
  return b.loop(
      chunkStart, end, b.index(kWeightBlock), sums,
      [&](Value start, ValueRange known) {
        Values added = addValues(chunkStart, start,
                                 b.min(b.add(start, kWeightBlock), end),
                                 Values(known.size(), b.constant(0.0f)));
        Value block = b.div(b.sub(start, chunkStart), kWeightBlock);
        for (int64_t q = 0; q < queries(); ++q) {
          Value scale = b.load(weightScales,
                               b.add(block, q * (lanes / kWeightBlock)));
          for (int64_t i = q * numbers; i < (q + 1) * numbers; ++i)
            added[size_t(i)] =
                b.fma(scale, added[size_t(i)], known[unsigned(i)]);
        }
        return added;
      });
}

Values SharedBuilder::addValues(Value chunkStart, Value begin, Value end,
                                ValueRange sums) {
  return b.loop(
      begin, end, b.index(1), sums,
      [&](Value position, ValueRange inner) {
        Value c = b.sub(position, chunkStart), slot = slotOf(position);
        Values added(inner.begin(), inner.end());
        for (int64_t w = 0; w < numbers / pack; ++w) {
          Value word = b.min(b.add(lane, w * lanes), b.index(words - 1));
          Value bits = wordAt(AttentionSlots::values, slot, word);
          KvScale scale = readScaleAt(AttentionSlots::values, slot, word);
          for (auto [i, number] :
               llvm::enumerate(format.unpack(b, bits, scale)))
            for (int64_t q = 0; q < queries(); ++q) {
              Value &sum = added[q * numbers + w * pack + int64_t(i)];
              sum = b.fma(b.load(weights, b.add(c, q * lanes)), number, sum);
            }
        }
        return added;
      });
}

void SharedBuilder::write(unsigned binding, Value start, ArrayRef<Value> values,
                          int64_t length) {
  const bool whole = length % pack == 0;
  for (int64_t w = 0; w < numbers / pack; ++w) {
    Value word = b.add(lane, w * lanes);
    b.when(b.less(word, (length + pack - 1) / pack), [&] {
      for (int64_t i = 0; i < pack; ++i) {
        Value number = b.add(b.mul(word, pack), i);
        const auto store = [&] {
          b.store(values[w * pack + i], binding, b.add(start, number));
        };
        if (whole)
          store();
        else
          b.when(b.less(number, length), store);
      }
    });
  }
}

void SharedBuilder::build() {
  for (int64_t q = 0; q < queries(); ++q) {
    if (spec.integers) {
      // Lanes past the end have its last number once more.
      Values own, places;
      for (int64_t i = 0; i < spec.headSize; i += lanes) {
        places.push_back(b.min(b.add(lane, i), b.index(spec.headSize - 1)));
        own.push_back(b.load(AttentionSlots::q,
                             b.add(start(q, spec.headSize), places.back())));
      }
      const IntegerScale rounding = headScale(b, own, unsigned(lanes));
      queryScales.push_back(rounding.scale);
      for (auto [place, number] : llvm::zip_equal(places, own))
        b.store(codeOf(b, rounding, number), query,
                b.add(place, q * spec.headSize));
      continue;
    }
    b.loop(lane, b.index(spec.headSize), b.index(lanes), {},
           [&](Value i, ValueRange) {
             b.store(b.load(AttentionSlots::q,
                            b.add(start(q, spec.headSize), i)), query,
                     b.add(i, q * spec.headSize));
             return Values{};
           });
  }
  b.barrier();
  finish();
}

} // namespace

void buildAttentionShared(KernelBuilder &b, const AttentionSpec &spec,
                          const KernelInterface &interface) {
  SmallVector<Type> types{b.f32(), b.i32(), b.i32(), b.i32(), b.f32()};
  if (spec.parts)
    types.append({b.f32(), b.vec(2, b.f32())});
  if (spec.tree)
    types.push_back(b.i32());
  if (spec.bias)
    types.push_back(b.f32());
  if (spec.cache && KvFormat::named(spec.kv).quantised())
    types.push_back(b.i32());
  b.open(types);
  SharedBuilder(b, spec, interface.workgroup[0]).build();
  b.close();
}

} // namespace mlir::llm
