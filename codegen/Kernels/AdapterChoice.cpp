#include "codegen/Kernels/AdapterChoice.h"

#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

static constexpr unsigned kControl = 0, kGains = 1, kIds = 2, kGain = 3;

FailureOr<AdapterChoiceSpec> AdapterChoiceSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  AdapterChoiceSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("adapters", spec.adapters, 1);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr AdapterChoiceSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context).add("adapters", adapters).done();
}

FailureOr<KernelInterface> AdapterChoiceSpec::interface(const TargetProfile &, EmitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("adapter_choice {0}", adapters);
  interface.name = KernelInterface::nameFor(llvm::formatv("adapter_choice_{0}", adapters).str(), interface.key);
  interface.bindings = {{"control", Access::Read, StepControl::kBytes},
                        {"gains", Access::Read, uint64_t(adapters) * 4},
                        {"ids", Access::Write, 4, /*perToken=*/true},
                        {"gain", Access::Write, 4, /*perToken=*/true}};
  interface.groups[0] = {1, 1};
  return interface;
}

void AdapterChoiceSpec::build(KernelBuilder &b, const KernelInterface &) const {
  b.open({b.i32(), b.f32(), b.i32(), b.f32()});
  StepControl control(b, kControl);
  Value number = b.toIndex(control.word(sprig::format::Adapter)), token = b.groupId();
  // Below the first one there is none, and above the last one either.
  Value known = b.bitAnd(b.less(b.index(0), number), b.less(number, b.index(adapters + 1)));
  Value id = b.select(known, b.sub(number, b.index(1)), b.index(0));
  b.store(b.toI32(id), kIds, token);
  b.store(b.select(known, b.load(kGains, id), b.constant(0.0f)), kGain, token);
  b.close();
}

} // namespace mlir::llm
