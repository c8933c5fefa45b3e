#include "codegen/Kernels/Route.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

/// Ids pass through f32 on their way to a maximum, and the chosen ones are kept
/// in registers.
constexpr int64_t kMostExperts = 4096, kMostChosen = 32;
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
  if (spec.score != "softmax" && spec.score != "sigmoid")
    reader.fail("expects score softmax or sigmoid, but got '" + spec.score +
                "'");
  if (spec.top > spec.experts)
    reader.fail("expects at most the " + Twine(spec.experts) +
                " experts to be chosen, but got " + Twine(spec.top));
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
      .done();
}

FailureOr<KernelInterface> RouteSpec::interface(const TargetProfile &profile,
                                                EmitError emitError) const {
  KernelInterface interface;
  const uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 32;
  interface.key = llvm::formatv(
      "route {0} of {1} {2}{3}{4} scale {5:e} lanes {6}", top, experts, score,
      normalise ? " normalise" : "", bias ? " bias" : "", scale, lanes);
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
    interface.sharedBytes = lanes * 4 * uint32_t(2 + 2 * top);
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

  Values chosen, scores;
  for (int64_t j = 0; j < top; ++j) {
    // The best of this lane that is not chosen yet; a lower id goes first, for
    // ids ascend.
    Values own =
        over({b.constant(kLeast), b.index(experts)},
             [&](Value i, ValueRange carried) {
               Value key = keyOf(i);
               for (Value before : chosen)
                 key = b.select(b.equal(i, before), b.constant(kLeast), key);
               Value better = b.less(carried[0], key);
               return Values{b.select(better, key, carried[0]),
                             b.select(better, i, carried[1])};
             });
    Value best = whole(own[0], kMax);
    Value least = b.neg(b.unsignedToF32(b.toI32(own[1])));
    Value id =
        whole(b.select(b.equal(own[0], best), least, b.constant(kLeast)), kMax);
    // Whatever the numbers are: an expert that exists.
    Value expert =
        b.min(b.toIndex(b.floorToI32(b.neg(id))), b.index(experts - 1));
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
