#include "codegen/Kernels/AttentionBuild.h"

namespace mlir::llm {

AttentionBuilder::AttentionBuilder(KernelBuilder &builder,
                                   const AttentionSpec &spec, int64_t chunk,
                                   int64_t numbers)
    : b(builder), spec(spec), format(KvFormat::named(spec.kv)), chunk(chunk),
      numbers(numbers), heads(spec.groupHeads()),
      range(builder,
            {spec.capacity, spec.window, spec.sinks, spec.split, spec.tree,
             AttentionSlots::tree(spec), spec.hidden, spec.blocks},
            AttentionSlots::control) {
  firstHead = b.mul(b.groupId(0), heads);
  keyHead = b.div(firstHead, spec.heads / spec.kvHeads);
  firstToken = b.mul(b.groupId(1), spec.tokens);
  slot = b.groupId(2);
  if (spec.cache)
    partBegin = b.mul(b.div(slot, spec.cache.part / spec.split),
                      spec.cache.part);
  for (int64_t t = 0; t < spec.tokens; ++t)
    limits.push_back(range.limit(b.add(firstToken, t)));
}

Value AttentionBuilder::row(int64_t query) const {
  return b.add(firstToken, query / heads);
}

Value AttentionBuilder::head(int64_t query) const {
  return b.add(firstHead, query % heads);
}

Value AttentionBuilder::start(int64_t query, int64_t length) const {
  return b.mul(b.add(b.mul(row(query), spec.heads), head(query)), length);
}

Value AttentionBuilder::score(int64_t query, Value product, Value position,
                              Value visible) {
  Value score = b.mul(product, b.constant(float(spec.scale)));
  if (spec.softcap != 0)
    score = b.mul(b.tanh(b.mul(score, b.constant(float(1 / spec.softcap)))),
                  b.constant(float(spec.softcap)));
  if (spec.bias) {
    // A token is at the last position that it sees.
    Value behind = b.sub(b.sub(limitOf(query), b.index(1)),
                         b.min(position, b.sub(limitOf(query), b.index(1))));
    score = b.sub(score, b.mul(slopes[size_t(query)],
                               b.unsignedToF32(b.toI32(behind))));
  }
  return b.select(visible, score, b.constant(AttentionRange::kHidden));
}

Values AttentionBuilder::roundIfSeen(Value at, ValueRange carried) {
  Values sees;
  Value any;
  for (Value limit : limits) {
    sees.push_back(range.seesAny(limit, at, chunk));
    any = any ? b.bitOr(any, sees.back()) : sees.back();
  }
  return b.choose(
      any,
      [&] {
        Values next = round(at, carried);
        for (int64_t q = 0; q < queries(); ++q)
          for (int64_t i = 0; i < carriedOf(); ++i) {
            Value &value = next[q * carriedOf() + i];
            value = b.select(sees[size_t(q / heads)], value,
                             carried[q * carriedOf() + i]);
          }
        return next;
      },
      [&] { return Values(carried.begin(), carried.end()); });
}

Values AttentionBuilder::walk(Value split) {
  Value begin = b.mul(split, spec.split);
  Value end = b.min(b.add(begin, spec.split), limits.back());
  if (spec.window) {
    // The first token sees farthest back.
    end = b.select(range.reaches(limits[0], begin, spec.split), end, begin);
    if (!spec.sinks)
      begin = b.max(begin, b.mul(b.div(range.first(limits[0]), chunk), chunk));
  }
  Values empty;
  for (int64_t q = 0; q < queries(); ++q)
    empty.append(emptyFold(b, numbers));
  Values state = b.loop(
      begin, end, b.index(chunk), empty, [&](Value at, ValueRange carried) {
        if (spec.blocks)
          return roundIfSeen(at, carried);
        Values next = round(at, carried);
        if (spec.tokens == 1)
          return next;
        // Chunks that a token does not see leave no trace in
        // its numbers, whoever else is served here.
        for (int64_t q = 0; q < queries(); ++q) {
          Value seen = range.seesAny(limitOf(q), at, chunk);
          for (int64_t i = 0; i < carriedOf(); ++i) {
            Value &value = next[q * carriedOf() + i];
            value = b.select(seen, value, carried[q * carriedOf() + i]);
          }
        }
        return next;
      });
  for (int64_t q = 0; q < queries(); ++q) {
    Value &sum = state[q * carriedOf() + 1];
    sum = total(sum);
  }
  return state;
}

void AttentionBuilder::storeResult(int64_t query, ArrayRef<Value> state) {
  Values out(state.drop_front(2));
  // A token that sees nothing has zeros.
  Value sum = spec.hidden ? b.max(state[1], b.constant(1e-30f)) : state[1];
  Value inverse = b.div(b.constant(1.0f), sum);
  for (Value &number : out)
    number = b.mul(number, inverse);
  write(AttentionSlots::y, start(query, spec.valueNumbers()), out,
        spec.valueNumbers());
}

Value AttentionBuilder::splitOf() {
  return spec.cache ? slot : b.add(range.firstSplit(), slot);
}

Value AttentionBuilder::placeOf(Value split) {
  return spec.cache ? b.sub(split, range.firstSplit()) : slot;
}

void AttentionBuilder::storeParts(const Values &state) {
  Value split = splitOf(), place = placeOf(split);
  for (int64_t q = 0; q < queries(); ++q) {
    ArrayRef<Value> own =
        ArrayRef(state).slice(size_t(q * carriedOf()), size_t(carriedOf()));
    Value mine = range.spans(limitOf(q), split),
          alone = range.seesOneSplit(limitOf(q));
    b.when(b.bitAnd(mine, alone),
           [&] { storeResult(q, own); });
    Value more = b.bitXor(alone, b.constantLike(alone, 1));
    b.when(b.bitAnd(mine, more), [&] {
      Value result = b.add(
          b.mul(b.add(b.mul(row(q), spec.heads), head(q)), spec.parts), place);
      write(AttentionSlots::partial, b.mul(result, spec.headSize),
            own.drop_front(2), spec.headSize);
      b.when(b.equal(b.localId(), b.index(0)), [&] {
        b.store(b.pack({own[0], own[1]}), AttentionSlots::stats, result);
      });
    });
  }
}

void AttentionBuilder::finish() {
  if (spec.bias)
    for (int64_t q = 0; q < queries(); ++q)
      slopes.push_back(b.load(AttentionSlots::bias(spec), head(q)));
  if (spec.parts)
    return storeParts(walk(splitOf()));
  Value first = b.div(range.first(limits[0]), spec.split);
  Value last = b.div(b.sub(limits.back(), b.index(1)), spec.split);
  Values empty;
  for (int64_t q = 0; q < queries(); ++q)
    empty.append(emptyFold(b, numbers));
  Values state =
      b.loop(first, b.add(last, 1), b.index(1), empty,
             [&](Value split, ValueRange known) {
               Values next = walk(split), folded;
               for (int64_t q = 0; q < queries(); ++q)
                 folded.append(foldSplit(
                     b, known.slice(q * carriedOf(), carriedOf()),
                     ValueRange(next).slice(q * carriedOf(), carriedOf())));
               return folded;
             });
  for (int64_t q = 0; q < queries(); ++q)
    storeResult(q, ArrayRef(state).slice(size_t(q * carriedOf()),
                                         size_t(carriedOf())));
}

} // namespace mlir::llm
