#include "codegen/Kernels/CosineGate.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

FailureOr<CosineGateSpec> CosineGateSpec::fromAttr(DictionaryAttr attr,
                                                   EmitError emitError) {
  CosineGateSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("eps", spec.eps);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr CosineGateSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("heads", heads)
      .add("head_size", headSize)
      .add("eps", eps)
      .done();
}

FailureOr<KernelInterface>
CosineGateSpec::interface(const TargetProfile &profile, EmitError) const {
  KernelInterface interface;
  const uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 64;
  interface.key = llvm::formatv("cosine_gate {0}x{1} eps {2:e} lanes {3}",
                                heads, headSize, eps, lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("cosine_gate_{0}x{1}", heads, headSize).str(),
      interface.key);
  interface.workgroup = {lanes, 1, 1};
  const uint64_t rowBytes = uint64_t(heads * headSize) * 4;
  interface.bindings = {{"q", Access::Read, rowBytes, true},
                        {"k", Access::Read, rowBytes, true},
                        {"v", Access::Read, rowBytes, true},
                        {"y", Access::Write, rowBytes, true}};
  interface.groups[0] = {uint32_t(heads), 0};
  interface.groups[1] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  else
    interface.sharedBytes = 3 * lanes * 4;
  return interface;
}

void CosineGateSpec::build(KernelBuilder &b,
                           const KernelInterface &interface) const {
  b.open({b.f32(), b.f32(), b.f32(), b.f32()});
  const int64_t lanes = interface.workgroup[0];
  Value lane = b.localId();
  Value start = b.mul(b.add(b.mul(b.groupId(1), heads), b.groupId(0)), headSize);
  const Values zeros(3, b.constant(0.0f));
  Values sums = b.loop(lane, b.index(headSize), b.index(lanes), zeros,
                       [&](Value i, ValueRange carried) {
                         Value q = b.load(0, b.add(start, i)),
                               k = b.load(1, b.add(start, i));
                         return Values{b.fma(q, k, carried[0]),
                                       b.fma(q, q, carried[1]),
                                       b.fma(k, k, carried[2])};
                       });
  for (Value &sum : sums)
    sum = b.reduce(sum, unsigned(lanes));
  Value least = b.constant(float(eps));
  Value lengths = b.mul(b.max(b.sqrt(sums[1]), least),
                        b.max(b.sqrt(sums[2]), least));
  Value cosine = b.div(sums[0], lengths);
  b.loop(lane, b.index(headSize), b.index(lanes), {},
         [&](Value i, ValueRange) {
           Value at = b.add(start, i);
           b.store(b.mul(cosine, b.load(2, at)), 3, at);
           return Values{};
         });
  b.close();
}

} // namespace mlir::llm
