#include "codegen/Kernels/Read.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr int64_t kLanes = 8, kLoadBytes = 16, kLoadsPerRound = 8;
constexpr int64_t kGroupLoads = 65536 / kLoadBytes;

} // namespace

FailureOr<ReadSpec> ReadSpec::fromAttr(DictionaryAttr attr,
                                       EmitError emitError) {
  ReadSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("bytes", spec.bytes, kLoadBytes);
  reader.maybe("texels", spec.texels, 0, 1);
  if (spec.bytes % kLoadBytes)
    reader.fail("expects bytes to be a multiple of 16, but got " +
                Twine(spec.bytes));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr ReadSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context).add("bytes", bytes).add("texels", texels).done();
}

int64_t ReadSpec::groups() const {
  return llvm::divideCeil(bytes / kLoadBytes, kGroupLoads);
}

FailureOr<KernelInterface> ReadSpec::interface(const TargetProfile &profile,
                                               EmitError emitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("read {0} texels={1}", bytes, texels);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("read_{0}", bytes).str(), interface.key);
  interface.workgroup = {uint32_t(kLanes), 1, 1};
  interface.bindings = {
      {"x", Access::Read, uint64_t(bytes)},
      {"y", Access::Write, uint64_t(groups() * kLanes) * 4}};
  if (texels)
    interface.bindings[0].texel = TexelFormat::Rgba32Uint;
  interface.groups[0] = {uint32_t(groups()), 0};
  return interface;
}

void ReadSpec::build(KernelBuilder &b, const KernelInterface &interface) const {
  b.open({b.vec(4, b.i32()), b.i32()});
  int64_t total = bytes / kLoadBytes;
  Value lane = b.localId(), first = b.mul(b.groupId(), kGroupLoads);
  Value end = b.min(b.add(first, kGroupLoads), b.index(total));
  Value mixed = b.loop(
      b.add(first, lane), end, b.index(kLanes * kLoadsPerRound),
      b.constant(0u), [&](Value i, ValueRange carried) {
        Value word = carried[0];
        for (int64_t load = 0; load < kLoadsPerRound; ++load) {
          // The last rounds read the end again.
          Value at = b.min(b.add(i, load * kLanes), b.index(total - 1));
          for (Value part : b.unpack(b.load(0, at)))
            word = b.bitXor(word, part);
        }
        return Values{word};
      })[0];
  b.store(mixed, 1, b.globalId());
  b.close();
}

} // namespace mlir::llm
