#include "codegen/Lowering/TargetLowering.h"

namespace mlir::llm {

static plan::TargetOp makeTarget(ModuleOp module, const TargetProfile &profile) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  // A profile that was read from a file is found again under that file's name; the symbol is the profile's own name.
  auto target = plan::TargetOp::create(builder, module.getLoc(), profile.name, /*profile=*/StringAttr());
  builder.createBlock(&target.getBody());
  return target;
}

TargetLowering::TargetLowering(ModuleOp module, const TargetProfile &profile, WeightTable &weights)
    : targetProfile(profile), weightTable(weights), target(makeTarget(module, profile)), symbols(target),
      builder(OpBuilder::atBlockBegin(&target.getBody().front())) {}

FailureOr<const KernelInterface *> TargetLowering::kernel(StringRef family, DictionaryAttr spec, Operation *user) {
  std::unique_ptr<KernelInterface> &known = kernels[{builder.getStringAttr(family), spec}];
  if (known)
    return known.get();
  FailureOr<KernelInterface> interface = describeKernel(family, spec, targetProfile, user->getLoc());
  if (failed(interface))
    return failure();
  known = std::make_unique<KernelInterface>(std::move(*interface));
  if (symbols.lookup(known->name)) // another spec with the same key
    return known.get();
  SmallVector<int32_t> access, workgroup(known->workgroup.begin(), known->workgroup.end());
  int32_t uniform = 0;
  for (auto [i, binding] : llvm::enumerate(known->bindings)) {
    access.push_back(int32_t(binding.access));
    uniform |= int32_t(binding.uniform) << i;
  }
  auto kernel = plan::KernelOp::create(
      builder, user->getLoc(), builder.getStringAttr(known->name), builder.getStringAttr(family), spec,
      builder.getStringAttr("main"), builder.getDenseI32ArrayAttr(access), builder.getDenseI32ArrayAttr(workgroup),
      builder.getI32IntegerAttr(uniform), builder.getI32IntegerAttr(known->pushConstantBytes),
      builder.getI32IntegerAttr(known->sharedBytes), builder.getI32IntegerAttr(known->subgroupSize),
      /*features=*/ArrayAttr(), /*spirv=*/ElementsAttr());
  kernel.getCode().emplaceBlock();
  return known.get();
}

plan::BufferOp TargetLowering::buffer(plan::BufferKind kind, StringRef name, uint64_t bytes) {
  if (auto known = symbols.lookup<plan::BufferOp>(name)) {
    known.setBytes(std::max<uint64_t>(known.getBytes(), bytes));
    return known;
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&target.getBody().front());
  auto buffer = plan::BufferOp::create(builder, target.getLoc(), name, kind, bytes, /*offset=*/IntegerAttr());
  symbols.insert(buffer, builder.getInsertionPoint());
  return buffer;
}

} // namespace mlir::llm
