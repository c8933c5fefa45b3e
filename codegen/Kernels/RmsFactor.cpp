#include "codegen/Kernels/RmsFactor.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

FailureOr<RmsFactorSpec> RmsFactorSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  RmsFactorSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1);
  spec.count = spec.width;
  reader.maybe("count", spec.count, 1);
  reader.maybe("eps", spec.eps); // 0 is not written
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr RmsFactorSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("width", width)
      .add("count", count == width ? 0 : count)
      .add("eps", eps)
      .done();
}

FailureOr<KernelInterface>
RmsFactorSpec::interface(const TargetProfile &profile,
                         EmitError emitError) const {
  KernelInterface interface;
  // One subgroup where lanes can exchange values directly, else a workgroup
  // that the shared memory serves.
  uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 64;
  interface.key = llvm::formatv("rms_factor {0} of {1} eps {2:e} lanes {3}",
                                count, width, eps, lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("rms_factor_{0}", width).str(), interface.key);
  interface.workgroup = {lanes, 1, 1};
  interface.bindings = {
      {"x", Access::Read, uint64_t(width) * 4, /*perToken=*/true},
      {"y", Access::Write, 4, /*perToken=*/true}};
  interface.groups[0] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  else
    interface.sharedBytes = lanes * 4;
  return interface;
}

void RmsFactorSpec::build(KernelBuilder &b,
                          const KernelInterface &interface) const {
  b.open({b.f32(), b.f32()});
  int64_t lanes = interface.workgroup[0];
  Value lane = b.localId(), token = b.groupId();
  Value row = b.mul(token, width);
  // Lane l adds the squares of x[l], x[l + lanes], …
  Value sum = b.loop(lane, b.index(width), b.index(lanes), b.constant(0.0f),
                     [&](Value i, ValueRange carried) {
                       Value x = b.load(0, b.add(row, i));
                       return Values{b.fma(x, x, carried[0])};
                     })[0];
  sum = b.reduce(sum, unsigned(lanes));
  Value mean = b.fma(sum, b.constant(float(1.0 / double(count))),
                     b.constant(float(eps)));
  b.when(b.equal(lane, b.index(0)),
         [&] { b.store(b.div(b.constant(1.0f), b.sqrt(mean)), 1, token); });
  b.close();
}

} // namespace mlir::llm
