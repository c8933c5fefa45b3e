#include "codegen/Kernels/Top.h"

#include "codegen/Kernels/SampleNoise.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/Format/Guesses.h"

namespace mlir::llm {
namespace {

using namespace sprig::format;

constexpr unsigned kLogits = 0, kControl = 1, kRows = 2;
constexpr uint32_t kMostLanes = 256;
constexpr int64_t kClasses = 256; ///< a multiple of the lanes
constexpr float kLowest = -3.402823466e38f;

bool isNarrow(const TargetProfile &profile) {
  return profile.canShuffle() && profile.subgroupSize <= 8;
}

class TopBuilder {
public:
  TopBuilder(KernelBuilder &builder, const TopSpec &spec, unsigned lanes)
      : b(builder), spec(spec), lanes(lanes) {}

  void build();

private:
  struct Best {
    Value z, id;
  };
  /// The better of two; the lower id among equals.
  Best better(Best a, Best c) {
    Value wins = b.bitOr(b.less(a.z, c.z), b.bitAnd(b.equal(a.z, c.z),
                                                    b.less(c.id, a.id)));
    return {b.select(wins, c.z, a.z), b.select(wins, c.id, a.id)};
  }
  /// The best of all lanes.
  Best bestOfLanes(Best own);
  /// The best of the elements of `ofClass` from number `first` on, `step`
  /// apart, that `counts`.
  Best bestOf(Value ofClass, Value first, int64_t step,
              function_ref<Value(Value z, Value id)> counts);
  /// The logit of a token; NaN, and what is no token, as the lowest number.
  Value logit(Value token);
  void sumUp();
  void take(Value number);

  KernelBuilder &b;
  const TopSpec &spec;
  unsigned lanes;
  Value lane, row, rowOf, best, ids;
  Value most, logOfSum;
};

TopBuilder::Best TopBuilder::bestOfLanes(Best own) {
  using Reduction = KernelBuilder::Reduction;
  Value z = b.reduce(own.z, lanes, Reduction::Max);
  // The lowest id is the largest of the inverted ids.
  Value inverted = b.select(b.equal(own.z, z),
                            b.bitXor(own.id, b.constant(~0u)), b.constant(0u));
  return {z, b.bitXor(b.reduce(inverted, lanes, Reduction::Max),
                      b.constant(~0u))};
}

Value TopBuilder::logit(Value token) {
  Value inside = b.less(token, spec.drawable());
  Value z = b.load(kLogits, b.add(row, b.select(inside, token, b.index(0))));
  return b.select(b.bitAnd(inside, b.equal(z, z)), z, b.constant(kLowest));
}

TopBuilder::Best
TopBuilder::bestOf(Value ofClass, Value first, int64_t step,
                   function_ref<Value(Value z, Value id)> counts) {
  const int64_t elements = (spec.drawable() + kClasses - 1) / kClasses;
  Values found = b.loop(
      first, b.index(elements), b.index(step),
      {b.constant(kLowest), b.constant(~0u)},
      [&](Value number, ValueRange carried) {
        Value token = b.add(ofClass, b.mul(number, kClasses));
        Value z = logit(token), id = b.toI32(token);
        Value wins = b.bitAnd(b.less(carried[0], z), counts(z, id));
        return Values{b.select(wins, z, carried[0]),
                      b.select(wins, id, carried[1])};
      });
  return {found[0], found[1]};
}

/// Finds the largest logit and the logarithm of the sum of all.
void TopBuilder::sumUp() {
  b.loop(lane, b.index(kClasses), b.index(lanes), {},
         [&](Value ofClass, ValueRange) {
           Best own = bestOf(ofClass, b.index(0), 1,
                             [&](Value z, Value) { return b.equal(z, z); });
           b.store(own.z, best, ofClass);
           b.store(own.id, ids, ofClass);
           return Values{};
         });
  Value highest = b.loop(lane, b.index(kClasses), b.index(lanes),
                         b.constant(kLowest),
                         [&](Value ofClass, ValueRange carried) {
                           return Values{b.max(carried[0],
                                               b.load(best, ofClass))};
                         })[0];
  most = b.reduce(highest, lanes, KernelBuilder::Reduction::Max);
  Value sum = b.loop(
      lane, b.index(spec.drawable()), b.index(lanes), b.constant(0.0f),
      [&](Value token, ValueRange carried) {
        return Values{b.add(carried[0], b.exp(b.sub(logit(token), most)))};
      })[0];
  // The largest counts as one, so the sum is not below.
  logOfSum = SampleNoise::log(
      b, b.max(b.reduce(sum, lanes), b.constant(1.0f)));
}

/// The next best of all classes, which then loses it.
void TopBuilder::take(Value number) {
  Values own = b.loop(
      lane, b.index(kClasses), b.index(lanes),
      {b.constant(kLowest), b.constant(~0u)},
      [&](Value ofClass, ValueRange carried) {
        Best next = better({carried[0], carried[1]},
                           {b.load(best, ofClass), b.load(ids, ofClass)});
        return Values{next.z, next.id};
      });
  const Best taken = bestOfLanes({own[0], own[1]});
  Value isOne = b.less(b.constant(kLowest), taken.z);
  Value ofClass = b.toIndex(
      b.select(isOne, b.rem(taken.id, kClasses), b.constant(0u)));
  const Best next = bestOfLanes(
      bestOf(ofClass, lane, lanes, [&](Value z, Value id) {
        return b.bitOr(b.less(z, taken.z),
                       b.bitAnd(b.equal(z, taken.z), b.less(taken.id, id)));
      }));
  b.barrier(); // every lane has read the classes
  b.when(b.equal(lane, b.index(0)), [&] {
    Value at = b.add(rowOf, number);
    b.store(b.select(isOne, taken.id, b.constant(kNoGuess)), kRows, at);
    Value logarithm = b.select(isOne, b.sub(b.sub(taken.z, most), logOfSum),
                               b.constant(kLowest));
    b.store(b.bitsOfF32(logarithm), kRows, b.add(at, kGuesses));
    b.when(isOne, [&] {
      b.store(next.z, best, ofClass);
      b.store(next.id, ids, ofClass);
    });
  });
  b.barrier();
}

void TopBuilder::build() {
  b.open({b.f32(), b.i32(), b.i32()});
  StepControl control(b, kControl);
  lane = b.localId();
  best = b.shared(b.f32(), kClasses);
  ids = b.shared(b.i32(), kClasses);
  Value number;
  if (spec.tree) {
    number = b.groupId(0);
    row = b.mul(number, spec.vocabulary);
  } else {
    // The step that drew a token has counted itself.
    number = b.toIndex(b.sub(control.word(Steps), b.constant(1u)));
    row = b.index(0);
  }
  rowOf = b.mul(b.rem(number, kGuessRows), kGuessWords);
  sumUp();
  b.barrier();
  b.loop(b.index(0), b.index(kGuesses), b.index(1), {},
         [&](Value round, ValueRange) {
           take(round);
           return Values{};
         });
  b.close();
}

} // namespace

FailureOr<TopSpec> TopSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  TopSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("vocabulary", spec.vocabulary, 1, (1 << 24) - 1);
  reader.maybe("tokens", spec.tokens, 1, spec.vocabulary);
  reader.maybe("tree", spec.tree, 0, 1);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr TopSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("vocabulary", vocabulary)
      .add("tokens", tokens)
      .add("tree", tree)
      .done();
}

FailureOr<KernelInterface> TopSpec::interface(const TargetProfile &profile,
                                              EmitError) const {
  const bool narrow = isNarrow(profile);
  uint32_t lanes = narrow ? profile.subgroupSize : 1;
  // Powers of two deal the classes evenly.
  while (!narrow &&
         lanes * 2 <= std::min(kMostLanes, profile.limits.workgroupInvocations))
    lanes *= 2;
  KernelInterface interface;
  interface.key = llvm::formatv("top {0} of {1} tree {2} lanes {3}", drawable(),
                                vocabulary, tree, lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("top_{0}", vocabulary).str(), interface.key);
  interface.workgroup = {lanes, 1, 1};
  interface.bindings = {
      {"logits", Access::Read, uint64_t(vocabulary) * 4, tree != 0},
      {"control", Access::Read, StepControl::kBytes},
      {"guesses", Access::Write, kGuessBytes}};
  if (tree)
    interface.groups[0] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  // The classes; of the six reductions, what shuffles do not reach.
  interface.sharedBytes = kClasses * 8 + (narrow ? 0 : lanes * 4 * 6);
  return interface;
}

void TopSpec::build(KernelBuilder &builder,
                    const KernelInterface &interface) const {
  TopBuilder(builder, *this, interface.workgroup[0]).build();
}

} // namespace mlir::llm
