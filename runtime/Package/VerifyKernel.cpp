#include "runtime/Package/Spirv.h"
#include "runtime/Package/Texels.h"
#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

namespace sprig {

Status verifyKernel(const format::Kernel &kernel,
                    const format::Requirements &requirements) {
  auto corrupt = [](const auto &...parts) {
    return Status(StatusCode::Corrupt, concat(parts...));
  };
  uint64_t x = kernel.workgroup_x(), y = kernel.workgroup_y(),
           z = kernel.workgroup_z();
  bool sane = x && y && z && x <= 65536 && y <= 65536 && z <= 65536;
  if (!sane || x * y * z > requirements.workgroup_invocations())
    return corrupt(
        "expects a workgroup of 1 to ", requirements.workgroup_invocations(),
        " invocations (the target's limit), but got ", x, " x ", y, " x ", z);
  if (kernel.bindings() > 32 ||
      kernel.bindings() > requirements.storage_buffers())
    return corrupt("expects at most ", requirements.storage_buffers(),
                   " bindings (the target's limit; never over 32), but got ",
                   kernel.bindings());
  if (kernel.bindings() < 32 && kernel.uniform_bindings() >> kernel.bindings())
    return corrupt("expects uniform bindings among its ", kernel.bindings(),
                   ", but got mask ", kernel.uniform_bindings());
  if (const auto *formats = kernel.texel_formats()) {
    if (formats->size() != 0 && formats->size() != kernel.bindings())
      return corrupt("expects a texel format for each of its ",
                     kernel.bindings(), " bindings, but got ", formats->size());
    for (uint32_t i = 0; i < formats->size(); ++i)
      if (formats->Get(i) != 0 && (texelBytes(formats->Get(i)) == 0 ||
                                   kernel.uniform_bindings() >> i & 1))
        return corrupt("expects 0, or VkFormat 98, 100, 107 or 109, as the "
                       "texel format of binding ",
                       i, " (0 if it is uniform), but got ", formats->Get(i));
  }
  if (kernel.push_constant_bytes() % 4 != 0 ||
      kernel.push_constant_bytes() > requirements.push_constant_bytes())
    return corrupt("expects push constants of whole words up to ",
                   requirements.push_constant_bytes(),
                   " bytes (the target's limit), but got ",
                   kernel.push_constant_bytes());
  if (kernel.shared_bytes() > requirements.shared_bytes())
    return corrupt("expects at most ", requirements.shared_bytes(),
                   " bytes of shared memory (the target's limit), but got ",
                   kernel.shared_bytes());
  uint32_t size = kernel.subgroup_size();
  if (size > 128 || (size & (size - 1)) != 0)
    return corrupt("expects a subgroup size of 0 or a power of two up to 128, "
                   "but got ",
                   size);
  return checkSpirv(kernel, requirements).within("SPIR-V");
}

} // namespace sprig
