#include "codegen/Kernels/Sample.h"

#include "codegen/Kernels/SampleNoise.h"
#include "codegen/Kernels/SampleRounds.h"
#include "codegen/Kernels/StepControl.h"
#include "codegen/Kernels/TreeTable.h"
#include "runtime/Format/Guesses.h"

namespace mlir::llm {
namespace {

constexpr unsigned kLogits = 0, kControl = 1, kHistory = 2, kTree = 3,
                   kDrawn = 4, kGuesses = 5;
constexpr float kLowest = -3.402823466e38f;

class SampleBuilder {
public:
  SampleBuilder(KernelBuilder &builder, const SampleSpec &spec, unsigned lanes,
                unsigned digitBits)
      : b(builder), spec(spec), lanes(lanes), digitBits(digitBits),
        control(builder, kControl) {}

  void build();

private:
  void penalise();
  /// The token at a position of the sequence that this row ends.
  Value tokenAt(Value place);
  /// Where the logit of `token` lies.
  Value placeOf(Value token) { return row ? b.add(row, token) : token; }
  /// Leaves the token where the next step, or tree_accept, finds it.
  void finish(Value token);
  /// The logit of `token`, NaN as the lowest number; lanes past the vocabulary
  /// see the lowest number too.
  Value logit(Value token);
  /// Visits the vocabulary, lane by lane, carrying values.
  Values visit(ValueRange initial,
               function_ref<Values(Value token, ValueRange carried)> body);
  /// The largest of the lanes' values, and the lowest id among equals.
  std::pair<Value, Value> best(Value value, Value id);
  /// Bits of an f32 in an order that unsigned comparison respects.
  Value ordered(Value number);
  /// The largest key t for which weigh(keys >= t), summed over the vocabulary,
  /// reaches `goal`. `weigh` gives what a token counts (f32).
  Value threshold(Value goal, function_ref<Value(Value z, Value key)> weigh);
  /// Draws with noise; `most` is the largest z.
  Value sampled(Value most);
  using Keeps = function_ref<Value(Value token, Value z)>;
  /// The token of those that `keeps` with the most noise on top, and how much.
  std::pair<Value, Value> noisiest(Keeps keeps, SampleNoise &noise);
  /// By the multi-round rule.
  Value byRounds(Value most, Keeps keeps, SampleNoise &noise);
  Value negate(Value truth) {
    return b.bitXor(truth, b.constantLike(truth, 1));
  }

  KernelBuilder &b;
  const SampleSpec &spec;
  unsigned lanes;
  unsigned digitBits; ///< of a key that one pass over the vocabulary settles
  StepControl control;
  Value lane, position, inverse;
  Value node, row, base; ///< of a tree: the row's node, its first logit
};

Value SampleBuilder::tokenAt(Value place) {
  if (spec.tree)
    place = b.min(TreeTable(b, spec.tree, kTree).slot(node, place, base),
                  b.index(spec.capacity - 1));
  return b.load(kHistory, place);
}

void SampleBuilder::penalise() {
  Value penalty = control.number(sprig::format::RepeatPenalty);
  b.when(negate(b.equal(penalty, b.constant(1.0f))), [&] {
    Value window =
        b.min(b.toIndex(control.word(sprig::format::RepeatLastN)), position);
    Value begin = b.sub(position, window);
    b.loop(b.add(begin, lane), position, b.index(lanes), {},
           [&](Value slot, ValueRange) {
             Value id = tokenAt(slot);
             // Only an id's first place in the window counts.
             Value earlier = b.loop(
                 begin, slot, b.index(1), b.constant(0u),
                 [&](Value other, ValueRange seen) {
                   Value same = b.equal(tokenAt(other), id);
                   return Values{b.select(same, b.constant(1u), seen[0])};
                 })[0];
             Value inside = b.less(id, b.constant(uint32_t(spec.drawable())));
             Value first = b.equal(earlier, b.constant(0u));
             b.when(b.bitAnd(inside, first), [&] {
               Value place = placeOf(b.toIndex(id));
               Value z = b.load(kLogits, place);
               Value up = b.less(b.constant(0.0f), z);
               b.store(b.select(up, b.div(z, penalty), b.mul(z, penalty)),
                       kLogits, place);
             });
             return Values{};
           });
  });
  b.barrier();
}

Value SampleBuilder::logit(Value token) {
  Value inside = b.less(token, spec.drawable());
  Value z = b.load(kLogits, placeOf(b.select(inside, token, b.index(0))));
  return b.select(b.bitAnd(inside, b.equal(z, z)), z, b.constant(kLowest));
}

Values SampleBuilder::visit(
    ValueRange initial,
    function_ref<Values(Value token, ValueRange carried)> body) {
  return b.loop(b.index(0), b.index(spec.drawable()), b.index(lanes), initial,
                [&](Value start, ValueRange carried) {
                  return body(b.add(start, lane), carried);
                });
}

std::pair<Value, Value> SampleBuilder::best(Value value, Value id) {
  Value most = b.reduce(value, lanes, KernelBuilder::Reduction::Max);
  // The lowest id is the largest of the inverted ids.
  Value holds = b.equal(value, most);
  Value inverted =
      b.select(holds, b.bitXor(id, b.constant(~0u)), b.constant(0u));
  Value lowest =
      b.bitXor(b.reduce(inverted, lanes, KernelBuilder::Reduction::Max),
               b.constant(~0u));
  return {most, lowest};
}

Value SampleBuilder::ordered(Value number) {
  Value bits = b.bitsOfF32(number);
  return b.bitXor(bits, b.bitOr(b.sar(bits, 31), b.constant(0x80000000u)));
}

Value SampleBuilder::threshold(Value goal,
                               function_ref<Value(Value z, Value key)> weigh) {
  // Every pass settles one more digit of the key.
  return b.loop(
      b.index(0), b.index(32), b.index(digitBits), b.constant(0u),
      [&](Value done, ValueRange known) {
        Value shift = b.toI32(b.sub(b.index(32 - digitBits), done));
        Values trials;
        for (uint32_t digit = 1; digit < 1u << digitBits; ++digit)
          trials.push_back(b.bitOr(
              known[0], arith::ShLIOp::create(b.ops(), b.loc(),
                                              b.constant(digit), shift)));
        Values sums = visit(
            Values(trials.size(), b.constant(0.0f)),
            [&](Value token, ValueRange carried) {
              Value z = b.mul(logit(token), inverse);
              Value key = ordered(z);
              Value weight = b.select(b.less(token, spec.drawable()),
                                      weigh(z, key), b.constant(0.0f));
              Values next;
              for (auto [trial, sum] : llvm::zip_equal(trials, carried))
                next.push_back(b.add(sum, b.select(b.less(key, trial),
                                                   b.constant(0.0f), weight)));
              return next;
            });
        Value chosen = known[0];
        for (auto [trial, sum] : llvm::zip_equal(trials, sums)) {
          Value total = b.reduce(sum, lanes);
          chosen = b.select(b.less(total, goal), chosen, trial);
        }
        return Values{chosen};
      })[0];
}

Value SampleBuilder::sampled(Value most) {
  Value lowest = b.constant(0u);
  Value topK = control.word(sprig::format::TopK);
  // Top-k counts in f32: exact below 2^24.
  Value byCount = b.choose(
      b.less(b.constant(0u), topK),
      [&] {
        Value goal =
            b.unsignedToF32(b.min(topK, b.constant(uint32_t(spec.drawable()))));
        return Values{
            threshold(goal, [&](Value, Value) { return b.constant(1.0f); })};
      },
      [&] { return Values{lowest}; })[0];

  Value topP = control.number(sprig::format::TopP);
  auto weigh = [&](Value z, Value key) {
    return b.select(b.less(key, byCount), b.constant(0.0f),
                    b.exp(b.sub(z, most)));
  };
  Value byMass = b.choose(
      b.less(topP, b.constant(1.0f)),
      [&] {
        Value total =
            visit({b.constant(0.0f)}, [&](Value token, ValueRange sum) {
              Value z = b.mul(logit(token), inverse);
              Value weight = b.select(b.less(token, spec.drawable()),
                                      weigh(z, ordered(z)), b.constant(0.0f));
              return Values{b.add(sum[0], weight)};
            })[0];
        Value goal = b.mul(b.reduce(total, lanes), topP);
        // At least the largest stays, even where top-p is zero.
        goal = b.max(goal, b.constant(1e-30f));
        return Values{threshold(goal, weigh)};
      },
      [&] { return Values{lowest}; })[0];

  Value minP = control.number(sprig::format::MinP);
  Value floor = b.select(
      b.less(b.constant(0.0f), minP),
      b.add(most, SampleNoise::log(b, b.max(minP, b.constant(1e-30f)))),
      b.constant(kLowest));

  SampleNoise noise(b, control.word(sprig::format::SeedLow),
                    control.word(sprig::format::SeedHigh), b.toI32(position));
  Value least = b.max(byCount, byMass);
  auto keeps = [&](Value token, Value z) {
    Value hidden = b.bitOr(b.less(ordered(z), least), b.less(z, floor));
    return b.bitAnd(b.less(token, spec.drawable()), negate(hidden));
  };
  if (!spec.rounds)
    return noisiest(keeps, noise).second;
  return b.choose(
      b.equal(control.word(sprig::format::Rounds), b.constant(0u)),
      [&] { return Values{noisiest(keeps, noise).second}; },
      [&] { return Values{byRounds(most, keeps, noise)}; })[0];
}

std::pair<Value, Value> SampleBuilder::noisiest(Keeps keeps,
                                                SampleNoise &noise) {
  Values winner =
      visit({b.constant(kLowest), b.constant(~0u)}, [&](Value token,
                                                        ValueRange carried) {
        Value z = b.mul(logit(token), inverse);
        Value kept = keeps(token, z);
        Value noisy = b.add(z, noise.gumbel(b.toI32(token)));
        Value better = b.bitAnd(kept, b.less(carried[0], noisy));
        return Values{b.select(better, noisy, carried[0]),
                      b.select(better, b.toI32(token), carried[1])};
      });
  return best(winner[0], winner[1]);
}

Value SampleBuilder::byRounds(Value most, Keeps keeps, SampleNoise &noise) {
  const Value zero = b.constant(0.0f), tiny = b.constant(1e-30f);
  SampleRounds rounds(b, control, kGuesses, node);
  auto others = [&](Value token, Value z) {
    return b.bitAnd(keeps(token, z), negate(rounds.names(token)));
  };
  Value rest = visit({zero}, [&](Value token, ValueRange sum) {
    Value z = b.mul(logit(token), inverse);
    Value weight = b.select(others(token, z), b.exp(b.sub(z, most)), zero);
    return Values{b.add(sum[0], weight)};
  })[0];
  rest = b.reduce(rest, lanes);
  Value total = rest;
  Values named;
  for (unsigned i = 0; i < rounds.size(); ++i) {
    Value token = b.toIndex(rounds.token(i));
    Value z = b.mul(logit(token), inverse);
    named.push_back(
        b.select(keeps(token, z), b.exp(b.sub(z, most)), zero));
    total = b.add(total, named.back());
  }
  total = b.max(total, tiny);
  for (Value &each : named)
    each = b.div(each, total);
  SampleRounds::Verdict verdict = rounds.walk(
      named, b.div(rest, total), noise,
      b.min(control.count(), b.index(spec.tree)), [&](Value child) {
        return b.load(kHistory,
                      b.min(b.add(base, child), b.index(spec.capacity - 1)));
      });
  // What is left of p, with the noise of plain decoding: as a logit, a named
  // token weighs ln p more than others, whose scale and sum it lacks.
  Value lack = b.sub(b.add(most, SampleNoise::log(b, total)),
                     SampleNoise::log(b, b.max(verdict.scale, tiny)));
  auto [score, token] = noisiest(others, noise);
  for (unsigned i = 0; i < rounds.size(); ++i) {
    Value weight = SampleNoise::log(b, b.max(verdict.named[i], tiny));
    Value noisy = b.add(b.add(weight, lack), noise.gumbel(rounds.token(i)));
    Value better =
        b.bitAnd(b.less(zero, verdict.named[i]), b.less(score, noisy));
    score = b.select(better, noisy, score);
    token = b.select(better, rounds.token(i), token);
  }
  return b.select(b.equal(verdict.token, b.constant(~0u)), token,
                  verdict.token);
}

void SampleBuilder::build() {
  SmallVector<Type> types{b.f32(), b.i32(), b.i32()};
  if (spec.tree)
    types.append({b.i32(), b.i32()});
  if (spec.rounds)
    types.push_back(b.i32());
  b.open(types);
  lane = b.localId();
  base = control.base();
  if (spec.tree) {
    node = b.groupId(0);
    row = b.mul(node, spec.vocabulary);
    position = b.add(b.add(base, control.depth(node)), 1);
  } else {
    position = b.add(base, control.count()); // of the token to draw
  }
  penalise();

  Values top =
      visit({b.constant(kLowest), b.constant(~0u)},
            [&](Value token, ValueRange carried) {
              Value z = logit(token);
              Value better = b.less(carried[0], z);
              return Values{b.select(better, z, carried[0]),
                            b.select(better, b.toI32(token), carried[1])};
            });
  auto [most, greedy] = best(top[0], top[1]);
  Value temperature = control.number(sprig::format::Temperature);
  Value token = b.choose(
      b.less(b.constant(0.0f), temperature),
      [&] {
        inverse = b.div(b.constant(1.0f), temperature);
        return Values{sampled(b.mul(most, inverse))};
      },
      [&] { return Values{greedy}; })[0];
  // A row without a single number names no token: take the first.
  token = b.select(b.less(token, b.constant(uint32_t(spec.drawable()))), token,
                   b.constant(0u));

  finish(token);
  b.close();
}

void SampleBuilder::finish(Value token) {
  if (spec.tree)
    return b.when(b.equal(lane, b.index(0)),
                  [&] { b.store(token, kDrawn, node); });
  Value steps = control.word(sprig::format::Steps);
  b.barrier(); // every lane has read the block
  b.when(b.equal(lane, b.index(0)), [&] {
    Value slot = b.min(position, b.index(spec.capacity));
    b.store(token, kHistory, slot);
    auto set = [&](sprig::format::ControlWord word, Value value) {
      b.store(value, kControl, b.index(word));
    };
    set(sprig::format::Sampled, token);
    set(sprig::format::Base, b.toI32(position));
    set(sprig::format::Count, b.constant(1u));
    set(sprig::format::Steps, b.add(steps, b.constant(1u)));
  });
}

} // namespace

void SampleSpec::build(KernelBuilder &builder,
                       const KernelInterface &interface) const {
  SampleBuilder(builder, *this, interface.workgroup[0],
                isNarrow(builder.target()) ? 4 : 2)
      .build();
}

} // namespace mlir::llm
