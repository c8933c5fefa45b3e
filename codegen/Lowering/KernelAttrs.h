// What a kernel's interface says, as attributes of its operation.
#ifndef SPRIG_CODEGEN_LOWERING_KERNELATTRS_H
#define SPRIG_CODEGEN_LOWERING_KERNELATTRS_H

#include "codegen/Kernels/Registry.h"
#include "dialects/Plan/Plan.h"

namespace mlir::llm {

/// Entry point, bindings, workgroup and sizes: everything but the code.
inline void setInterface(plan::KernelOp kernel,
                         const KernelInterface &interface) {
  SmallVector<int32_t> access,
      workgroup(interface.workgroup.begin(), interface.workgroup.end());
  SmallVector<int32_t> texels;
  bool anyTexels = false;
  uint32_t uniform = 0;
  for (auto [i, binding] : llvm::enumerate(interface.bindings)) {
    access.push_back(int32_t(binding.access));
    uniform |= uint32_t(binding.uniform) << i;
    texels.push_back(int32_t(binding.texel));
    anyTexels |= binding.texel != TexelFormat::None;
  }
  kernel.setEntry("main");
  kernel.setAccess(access);
  kernel.setWorkgroup(workgroup);
  kernel.setUniformBindings(uniform);
  if (anyTexels)
    kernel.setTexelFormats(texels);
  kernel.setPushConstantBytes(interface.pushConstantBytes);
  kernel.setSharedBytes(interface.sharedBytes);
  kernel.setSubgroupSize(interface.subgroupSize);
}

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_KERNELATTRS_H
