// Attention that exchanges through shared memory: for targets whose subgroups
// are unknown, and heads that a subgroup does not divide. A workgroup serves
// one token and one query head. Scores: lane = position of the chunk, the query
// in shared memory. Values: lane = words of the head, the chunk's weights in
// shared memory.
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/KvFormat.h"

namespace mlir::llm {

void buildAttentionShared(KernelBuilder &b, const AttentionSpec &spec,
                          const KernelInterface &interface) {
  KvFormat format = KvFormat::named(spec.kv);
  int64_t lanes = interface.workgroup[0];
  int64_t words = format.headWords(spec.headSize);
  int64_t pack = format.elementsPerWord();
  int64_t laneWords = (words + lanes - 1) / lanes; // lane, lane + lanes, …

  b.open({b.f32(), b.i32(), b.i32(), b.i32(), b.f32()});
  Value lane = b.localId(), head = b.groupId(0), token = b.groupId(1);
  Value keyHead = b.div(head, spec.heads / spec.kvHeads);
  AttentionRange range(b, spec, token, lanes);
  Value query = b.shared(b.f32(), spec.headSize);
  Value weights = b.shared(b.f32(), lanes);

  Value row = b.add(b.mul(token, spec.heads * spec.headSize),
                    b.mul(head, spec.headSize));
  b.loop(lane, b.index(spec.headSize), b.index(lanes), {},
         [&](Value i, ValueRange) {
           b.store(b.load(AttentionSlots::q, b.add(row, i)), query, i);
           return Values{};
         });
  b.barrier();

  auto wordAt = [&](unsigned binding, Value position, Value word) {
    Value start = b.mul(b.add(b.mul(position, spec.kvHeads), keyHead), words);
    return b.load(binding, b.add(start, word));
  };
  auto clamped = [&](Value position) {
    return b.min(position, b.index(spec.capacity - 1));
  };

  Values initial{b.constant(AttentionRange::kHidden)};
  initial.append(1 + laneWords * pack, b.constant(0.0f));
  Values state = b.loop(
      range.first(), range.end(), b.index(lanes), initial,
      [&](Value chunk, ValueRange carried) {
        Value own = b.add(chunk, lane);
        Value seen = range.sees(own);
        Value product = b.loop(
            0, words, 1, b.constant(0.0f), [&](Value word, ValueRange sum) {
              Value bits = b.select(
                  seen, wordAt(AttentionSlots::keys, clamped(own), word),
                  b.constant(0u));
              Value total = sum[0];
              for (auto [i, number] : llvm::enumerate(format.unpack(b, bits)))
                total = b.fma(b.load(query, b.add(b.mul(word, pack), i)),
                              number, total);
              return Values{total};
            })[0];
        Value score = range.score(product, seen);
        Value most = b.max(carried[0], b.reduce(score, unsigned(lanes),
                                                KernelBuilder::Reduction::Max));
        Value shrink = b.exp(b.sub(carried[0], most));
        Value weight =
            b.select(seen, b.exp(b.sub(score, most)), b.constant(0.0f));
        b.barrier(); // the last chunk's weights have been read
        b.store(weight, weights, lane);
        b.barrier();

        Values sums{most, b.fma(carried[1], shrink, weight)};
        Values shrunk;
        for (Value sum : carried.drop_front(2))
          shrunk.push_back(b.mul(sum, shrink));
        Value last = b.min(b.add(chunk, lanes), range.end());
        sums.append(b.loop(
            chunk, last, b.index(1), shrunk,
            [&](Value position, ValueRange inner) {
              Value share = b.load(weights, b.sub(position, chunk));
              Value visible = range.sees(position);
              Values next;
              for (int64_t w = 0; w < laneWords; ++w) {
                Value word = b.min(b.add(lane, w * lanes), b.index(words - 1));
                Value bits = b.select(
                    visible, wordAt(AttentionSlots::values, position, word),
                    b.constant(0u));
                for (auto [i, number] : llvm::enumerate(format.unpack(b, bits)))
                  next.push_back(b.fma(share, number, inner[w * pack + i]));
              }
              return next;
            }));
        return sums;
      });

  Value total = b.reduce(state[1], unsigned(lanes));
  Value inverse = b.div(b.constant(1.0f), total);
  for (int64_t w = 0; w < laneWords; ++w) {
    Value word = b.add(lane, w * lanes);
    b.when(b.less(word, words), [&] {
      for (int64_t i = 0; i < pack; ++i)
        b.store(b.mul(state[2 + w * pack + i], inverse), AttentionSlots::y,
                b.add(row, b.add(b.mul(word, pack), i)));
    });
  }
  b.close();
}

} // namespace mlir::llm
