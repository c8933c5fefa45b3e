#include "codegen/Kernels/VulkanMemory.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVTypes.h"

namespace mlir::llm {

bool usesMatrices(spirv::ModuleOp module) {
  return module
      .walk([](spirv::KHRCooperativeMatrixMulAddOp) {
        return WalkResult::interrupt();
      })
      .wasInterrupted();
}

static bool isShared(Value pointer) {
  return cast<spirv::PointerType>(pointer.getType()).getStorageClass() ==
         spirv::StorageClass::Workgroup;
}

void useVulkanMemoryModel(spirv::ModuleOp module) {
  MLIRContext *context = module.getContext();
  auto nonPrivate = spirv::MemoryAccessAttr::get(
      context, spirv::MemoryAccess::NonPrivatePointer);
  module.walk([&](Operation *op) {
    if (auto load = dyn_cast<spirv::LoadOp>(op)) {
      if (isShared(load.getPtr()))
        load.setMemoryAccessAttr(nonPrivate);
    } else if (auto store = dyn_cast<spirv::StoreOp>(op)) {
      if (isShared(store.getPtr()))
        store.setMemoryAccessAttr(nonPrivate);
    } else if (auto load = dyn_cast<spirv::KHRCooperativeMatrixLoadOp>(op)) {
      if (isShared(load.getPointer()))
        load.setMemoryOperandAttr(nonPrivate);
    } else if (auto store = dyn_cast<spirv::KHRCooperativeMatrixStoreOp>(op)) {
      if (isShared(store.getPointer()))
        store.setMemoryOperandAttr(nonPrivate);
    } else if (auto barrier = dyn_cast<spirv::ControlBarrierOp>(op)) {
      barrier.setMemorySemantics(barrier.getMemorySemantics() |
                                 spirv::MemorySemantics::MakeAvailable |
                                 spirv::MemorySemantics::MakeVisible);
    }
  });
  module.setMemoryModel(spirv::MemoryModel::Vulkan);

  // The pass that collects capabilities looks at operations alone.
  spirv::VerCapExtAttr needs = *module.getVceTriple();
  SmallVector<spirv::Capability> capabilities(needs.getCapabilities());
  SmallVector<spirv::Extension> extensions(needs.getExtensions());
  if (!llvm::is_contained(capabilities, spirv::Capability::VulkanMemoryModel))
    capabilities.push_back(spirv::Capability::VulkanMemoryModel);
  auto extension = spirv::Extension::SPV_KHR_vulkan_memory_model;
  if (needs.getVersion() < spirv::Version::V_1_5 &&
      !llvm::is_contained(extensions, extension))
    extensions.push_back(extension);
  module.setVceTripleAttr(spirv::VerCapExtAttr::get(
      needs.getVersion(), capabilities, extensions, context));
}

} // namespace mlir::llm
