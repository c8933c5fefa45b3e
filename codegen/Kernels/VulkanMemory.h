// The Vulkan memory model, which cooperative matrices ask for.
#ifndef SPRIG_CODEGEN_KERNELS_VULKANMEMORY_H
#define SPRIG_CODEGEN_KERNELS_VULKANMEMORY_H

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::llm {

/// Whether the module has cooperative matrices.
bool usesMatrices(spirv::ModuleOp module);

/// Puts the module under the Vulkan memory model: what other lanes may see is
/// no longer so by itself. Accesses of shared memory become non-private, and
/// barriers make them available and visible to the workgroup.
void useVulkanMemoryModel(spirv::ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_VULKANMEMORY_H
