#include "codegen/Kernels/Route.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

/// Ids pass through f32 on their way to a maximum, and the chosen ones are kept
/// in registers.
constexpr int64_t kMostExperts = 4096, kMostChosen = 32, kMostGroups = 32;
constexpr float kLeast = -3.0e38f;

} // namespace

FailureOr<RouteSpec> RouteSpec::fromAttr(DictionaryAttr attr,
                                         EmitError emitError) {
  RouteSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("experts", spec.experts, 1, kMostExperts);
  reader.read("top", spec.top, 1, kMostChosen);
  reader.read("score", spec.score);
  reader.read("normalise", spec.normalise);
  reader.read("bias", spec.bias);
  reader.maybe("scale", spec.scale);
  reader.maybe("groups", spec.groups, 0, kMostGroups);
  reader.maybe("top_groups", spec.topGroups, 0, spec.groups);
  reader.read("by_best", spec.byBest);
  if (spec.score != "softmax" && spec.score != "sigmoid")
    reader.fail("expects score softmax or sigmoid, but got '" + spec.score +
                "'");
  if (spec.top > spec.experts)
    reader.fail("expects at most the " + Twine(spec.experts) +
                " experts to be chosen, but got " + Twine(spec.top));
  if (spec.groups && (spec.experts % spec.groups || spec.topGroups < 1 ||
                      spec.experts / spec.groups * spec.topGroups < spec.top))
    reader.fail("expects equal groups, enough of which take part for " +
                Twine(spec.top) + " experts, but got " + Twine(spec.topGroups) +
                " of " + Twine(spec.groups) + " groups of " +
                Twine(spec.experts) + " experts");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr RouteSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("experts", experts)
      .add("top", top)
      .add("score", StringRef(score))
      .flag("normalise", normalise)
      .flag("bias", bias)
      .add("scale", scale)
      .add("groups", groups)
      .add("top_groups", topGroups)
      .flag("by_best", byBest)
      .done();
}

FailureOr<KernelInterface> RouteSpec::interface(const TargetProfile &profile,
                                                EmitError emitError) const {
  KernelInterface interface;
  const uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 32;
  interface.key = llvm::formatv(
      "route {0} of {1} {2}{3}{4} scale {5:e} lanes {6}", top, experts, score,
      normalise ? " normalise" : "", bias ? " bias" : "", scale, lanes);
  if (groups)
    interface.key += llvm::formatv(" groups {0} of {1}{2}", topGroups, groups,
                                   byBest ? " by best" : "");
  interface.name = KernelInterface::nameFor(
      llvm::formatv("route_{0}_of_{1}", top, experts).str(), interface.key);
  interface.workgroup = {lanes, 1, 1};
  interface.bindings = {{"x", Access::Read, uint64_t(experts) * 4, true}};
  if (bias)
    interface.bindings.push_back({"bias", Access::Read, uint64_t(experts) * 4});
  interface.bindings.push_back({"ids", Access::Write, uint64_t(top) * 4, true});
  interface.bindings.push_back(
      {"weights", Access::Write, uint64_t(top) * 4, true});
  interface.groups[0] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  else // an array for each reduction
    interface.sharedBytes = lanes * 4 *
                            uint32_t(2 + 2 * top + (byBest ? 2 : 4) * groups);
  return interface;
}

void RouteSpec::build(KernelBuilder &b,
                      const KernelInterface &interface) const {
  const unsigned ids = 1 + bias, weights = ids + 1;
  SmallVector<Type> types(weights + 1, b.f32());
  types[ids] = b.i32();
  b.open(types);
  const auto lanes = int64_t(interface.workgroup[0]);
  const Value lane = b.localId(), token = b.groupId();
  const Value row = b.mul(token, experts);
  const auto logit = [&](Value expert) {
    return b.load(0, b.add(row, expert));
  };
  // Lane l has experts l, l + lanes, …
  const auto over = [&](ValueRange initial, KernelBuilder::LoopBody body) {
    return b.loop(lane, b.index(experts), b.index(lanes), initial, body);
  };
  const auto whole = [&](Value own, KernelBuilder::Reduction how) {
    return b.reduce(own, unsigned(lanes), how);
  };
  constexpr auto kAdd = KernelBuilder::Reduction::Add,
                 kMax = KernelBuilder::Reduction::Max;

  Value largest, sum;
  if (score == "softmax") {
    largest = whole(over(b.constant(kLeast),
                         [&](Value i, ValueRange carried) {
                           return Values{b.max(logit(i), carried[0])};
                         })[0],
                    kMax);
    sum = whole(over(b.constant(0.0f),
                     [&](Value i, ValueRange carried) {
                       Value e = b.exp(b.sub(logit(i), largest));
                       return Values{b.add(carried[0], e)};
                     })[0],
                kAdd);
  }
  const auto scoreOf = [&](Value x) {
    if (score == "softmax")
      return b.div(b.exp(b.sub(x, largest)), sum);
    return b.div(b.constant(1.0f), b.add(b.constant(1.0f), b.exp(b.neg(x))));
  };
  // What is compared. Logits and softmax have one order.
  const auto keyOf = [&](Value expert) {
    Value x = logit(expert);
    if (!bias)
      return x;
    return b.add(scoreOf(x), b.load(1, expert));
  };

  // The best expert in [begin, end) by its key, without those in `before`; a
  // lower id goes first, for ids ascend.
  const auto best = [&](Value begin, Value end, ArrayRef<Value> before,
                        function_ref<Value(Value)> key) {
    Values own = b.loop(
        b.add(begin, lane), end, b.index(lanes),
        {b.constant(kLeast), b.index(experts)},
        [&](Value i, ValueRange carried) {
          Value mine = key(i);
          for (Value other : before)
            mine = b.select(b.equal(i, other), b.constant(kLeast), mine);
          Value better = b.less(carried[0], mine);
          return Values{b.select(better, mine, carried[0]),
                        b.select(better, i, carried[1])};
        });
    Value most = whole(own[0], kMax);
    Value least = b.neg(b.unsignedToF32(b.toI32(own[1])));
    Value id =
        whole(b.select(b.equal(own[0], most), least, b.constant(kLeast)), kMax);
    // Whatever the numbers are: an expert that exists.
    Value expert =
        b.min(b.toIndex(b.floorToI32(b.neg(id))), b.index(experts - 1));
    return std::pair(most, expert);
  };

  // Groups that take part: those with fewer better ones than there is room for.
  Values takesPart;
  if (groups) {
    const int64_t size = experts / groups;
    const auto scoreWithBias = [&](Value expert) {
      Value score = scoreOf(logit(expert));
      return bias ? b.add(score, b.load(1, expert)) : score;
    };
    Values totals;
    for (int64_t g = 0; g < groups; ++g) {
      Value begin = b.index(g * size), end = b.index((g + 1) * size);
      auto [first, firstId] = best(begin, end, {}, scoreWithBias);
      if (byBest || size == 1) {
        totals.push_back(first);
        continue;
      }
      Value second = best(begin, end, {firstId}, scoreWithBias).first;
      totals.push_back(b.add(first, second));
    }
    for (int64_t g = 0; g < groups; ++g) {
      Value better = b.index(0);
      for (int64_t other = 0; other < groups; ++other) {
        if (other == g)
          continue;
        Value ahead = b.less(totals[size_t(g)], totals[size_t(other)]);
        if (other < g)
          ahead = b.bitOr(ahead, b.equal(totals[size_t(g)],
                                         totals[size_t(other)]));
        better = b.add(better, b.select(ahead, b.index(1), b.index(0)));
      }
      takesPart.push_back(b.less(better, topGroups));
    }
  }
  const auto chosenKey = [&](Value expert) {
    Value key = keyOf(expert);
    if (!groups)
      return key;
    Value group = b.div(expert, experts / groups), allowed;
    for (auto [g, takes] : llvm::enumerate(takesPart)) {
      Value here = b.bitAnd(b.equal(group, b.index(int64_t(g))), takes);
      allowed = allowed ? b.bitOr(allowed, here) : here;
    }
    return b.select(allowed, key, b.constant(kLeast));
  };

  Values chosen, scores;
  for (int64_t j = 0; j < top; ++j) {
    Value expert = best(b.index(0), b.index(experts), chosen, chosenKey).second;
    chosen.push_back(expert);
    scores.push_back(scoreOf(logit(expert)));
  }
  Value factor = b.constant(float(scale == 0 ? 1.0 : scale));
  if (normalise) {
    Value total = scores[0];
    for (Value more : ArrayRef(scores).drop_front())
      total = b.add(total, more);
    factor = b.div(factor, total);
  }
  b.when(b.equal(lane, b.index(0)), [&] {
    for (int64_t j = 0; j < top; ++j) {
      Value at = b.add(b.mul(token, top), j);
      b.store(b.toI32(chosen[size_t(j)]), ids, at);
      b.store(b.mul(scores[size_t(j)], factor), weights, at);
    }
  });
  b.close();
}

} // namespace mlir::llm
