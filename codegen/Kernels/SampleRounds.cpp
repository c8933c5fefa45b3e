#include "codegen/Kernels/SampleRounds.h"

#include "codegen/Kernels/SampleNoise.h"
#include "runtime/Format/Guesses.h"

namespace mlir::llm {

using namespace sprig::format;

SampleRounds::SampleRounds(KernelBuilder &builder, StepControl block,
                           unsigned guesses, Value of)
    : b(builder), control(block), node(of) {
  Value row = b.mul(node, kGuessWords);
  for (uint32_t i = 0; i < kGuesses; ++i) {
    ids.push_back(b.load(guesses, b.add(row, i)));
    drawn.push_back(b.f32FromBits(b.load(guesses, b.add(row, kGuesses + i))));
  }
}

Value SampleRounds::names(Value token) {
  Value id = b.toI32(token), named;
  for (Value other : ids) {
    Value same = b.equal(id, other);
    named = named ? b.bitOr(named, same) : same;
  }
  return named;
}

SampleRounds::Verdict
SampleRounds::walk(Values named, Value rest, SampleNoise &noise, Value count,
                   function_ref<Value(Value node)> tokenOf) {
  const unsigned n = size();
  const Value zero = b.constant(0.0f), none = b.constant(~0u);
  // p, q, the scale, the token that stays.
  Values state(named);
  state.append(drawn.begin(), drawn.end());
  state.push_back(b.constant(1.0f));
  state.push_back(none);
  auto sumOf = [&](ArrayRef<Value> values) {
    Value sum = values[0];
    for (Value value : values.drop_front())
      sum = b.add(sum, value);
    return sum;
  };
  Values done = b.loop(
      b.add(node, 1), b.max(count, b.add(node, 1)), b.index(1), state,
      [&](Value child, ValueRange carried) {
        auto p = [&](unsigned i) { return carried[i]; };
        auto q = [&](unsigned i) { return carried[n + i]; };
        Value scale = carried[2 * n], kept = carried[2 * n + 1];
        Value mine = b.bitAnd(
            b.equal(control.packedByte(Parents, child), node),
            b.equal(kept, none));
        Value token = tokenOf(child);
        Values same, pHere, qHere, less;
        for (unsigned i = 0; i < n; ++i) {
          same.push_back(b.equal(ids[i], token));
          pHere.push_back(b.select(same[i], p(i), zero));
          qHere.push_back(b.select(same[i], q(i), zero));
          less.push_back(b.max(b.sub(p(i), q(i)), zero));
        }
        Value pToken = sumOf(pHere), qToken = sumOf(qHere);
        // Ids that no token has: the noise of tokens is not used again.
        Value u = noise.uniform(b.bitXor(b.toI32(child), none));
        // A draft that did not have the token did not draw it: never kept.
        Value stays = b.bitAnd(b.less(zero, qToken),
                               b.less(b.mul(u, qToken), pToken));
        Value left = b.add(sumOf(less), b.mul(scale, rest));
        // Equal distributions: then the child stayed, but for rounding.
        Value goes = b.bitAnd(
            b.bitAnd(mine, b.bitXor(stays, b.constantLike(stays, 1))),
            b.less(zero, left));
        Value divisor = b.select(goes, left, b.constant(1.0f));
        Values others;
        for (unsigned i = 0; i < n; ++i)
          others.push_back(b.select(same[i], zero, q(i)));
        Value remain = sumOf(others);
        Value share = b.select(b.less(zero, remain), remain, b.constant(1.0f));
        Values next;
        for (unsigned i = 0; i < n; ++i)
          next.push_back(b.select(goes, b.div(less[i], divisor), p(i)));
        for (unsigned i = 0; i < n; ++i)
          next.push_back(b.select(goes, b.div(others[i], share), q(i)));
        next.push_back(b.div(scale, divisor));
        next.push_back(b.select(b.bitAnd(mine, stays), token, kept));
        return next;
      });
  Verdict verdict;
  verdict.named.assign(done.begin(), done.begin() + n);
  verdict.scale = done[2 * n];
  verdict.token = done[2 * n + 1];
  return verdict;
}

} // namespace mlir::llm
