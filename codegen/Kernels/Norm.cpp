#include "codegen/Kernels/Norm.h"

#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

FailureOr<NormSpec> NormSpec::fromAttr(DictionaryAttr attr,
                                       EmitError emitError) {
  NormSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1);
  spec.count = spec.width;
  reader.maybe("count", spec.count, 1);
  reader.read("kind", spec.kind);
  reader.maybe("eps", spec.eps); // 0 is not written
  reader.read("scale", spec.scale);
  reader.read("shift", spec.shift);
  reader.read("last", spec.last);
  if (spec.kind != "rms" && spec.kind != "layer")
    reader.fail("expects kind rms or layer, but got '" + spec.kind + "'");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr NormSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("width", width)
      .add("count", count == width ? 0 : count)
      .add("kind", StringRef(kind))
      .add("eps", eps)
      .flag("scale", scale)
      .flag("shift", shift)
      .flag("last", last)
      .done();
}

FailureOr<KernelInterface> NormSpec::interface(const TargetProfile &profile,
                                               EmitError emitError) const {
  KernelInterface interface;
  uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 64;
  interface.key =
      llvm::formatv("norm {0} {1} of {2} eps {3:e}{4}{5}{6} lanes "
                    "{7}",
                    kind, count, width, eps, scale ? " scale" : "",
                    shift ? " shift" : "", last ? " last" : "", lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("norm_{0}", width).str(), interface.key);
  interface.workgroup = {lanes, 1, 1};
  uint64_t rowBytes = uint64_t(width) * 4;
  interface.bindings = {{"x", Access::Read, rowBytes, true}};
  if (scale)
    interface.bindings.push_back({"gamma", Access::Read, rowBytes});
  if (shift)
    interface.bindings.push_back({"beta", Access::Read, rowBytes});
  if (last)
    interface.bindings.push_back(
        {"control", Access::Read, StepControl::kBytes});
  interface.bindings.push_back({"y", Access::Write, rowBytes, !last});
  interface.groups[0] = last ? GroupCount{1, 0} : GroupCount{1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  else
    interface.sharedBytes = lanes * 4 * 2;
  return interface;
}

void NormSpec::build(KernelBuilder &b, const KernelInterface &interface) const {
  unsigned gamma = 1, beta = gamma + scale, control = beta + shift,
           y = control + last;
  SmallVector<Type> types(y + 1, b.f32());
  if (last)
    types[control] = b.i32();
  b.open(types);
  int64_t lanes = interface.workgroup[0];
  Value lane = b.localId();
  Value from = last ? StepControl(b, control).lastRow() : b.groupId();
  Value to = last ? b.index(0) : b.groupId();
  Value row = b.mul(from, width);

  // Lane l adds x[l], x[l + lanes], …
  auto sum = [&](function_ref<Value(Value, Value)> accumulate) {
    Value own = b.loop(lane, b.index(width), b.index(lanes), b.constant(0.0f),
                       [&](Value i, ValueRange carried) {
                         return Values{
                             accumulate(b.load(0, b.add(row, i)), carried[0])};
                       })[0];
    return b.reduce(own, unsigned(lanes));
  };
  Value inverse = b.constant(float(1.0 / double(count)));
  Value mean;
  if (kind == "layer")
    mean =
        b.mul(sum([&](Value x, Value all) { return b.add(all, x); }), inverse);
  auto centred = [&](Value x) { return mean ? b.sub(x, mean) : x; };
  Value squares = sum([&](Value x, Value all) {
    Value difference = centred(x);
    return b.fma(difference, difference, all);
  });
  // Channels that pruning took away count as zeros.
  if (mean && count != width)
    squares = b.fma(b.mul(mean, mean), b.constant(float(count - width)), squares);
  Value variance = b.fma(squares, inverse, b.constant(float(eps)));
  Value factor = b.div(b.constant(1.0f), b.sqrt(variance));
  Value out = b.mul(to, width);
  b.loop(lane, b.index(width), b.index(lanes), {}, [&](Value i, ValueRange) {
    Value x = b.mul(centred(b.load(0, b.add(row, i))), factor);
    if (scale)
      x = b.mul(x, b.load(gamma, i));
    if (shift)
      x = b.add(x, b.load(beta, i));
    b.store(x, y, b.add(out, i));
    return Values{};
  });
  b.close();
}

} // namespace mlir::llm
