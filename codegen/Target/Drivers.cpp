#include "codegen/Target/Drivers.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::llm {

// The values of VkDriverId in the Vulkan registry, from 1 on.
static constexpr llvm::StringLiteral kNames[] = {
    "amd_proprietary",
    "amd_open_source",
    "mesa_radv",
    "nvidia_proprietary",
    "intel_proprietary_windows",
    "intel_open_source_mesa",
    "imagination_proprietary",
    "qualcomm_proprietary",
    "arm_proprietary",
    "google_swiftshader",
    "ggp_proprietary",
    "broadcom_proprietary",
    "mesa_llvmpipe",
    "moltenvk",
    "coreavi_proprietary",
    "juice_proprietary",
    "verisilicon_proprietary",
    "mesa_turnip",
    "mesa_v3dv",
    "mesa_panvk",
    "samsung_proprietary",
    "mesa_venus",
    "mesa_dozen",
    "mesa_nvk",
    "imagination_open_source_mesa",
};

std::optional<uint32_t> driverByName(llvm::StringRef name) {
  const auto *it = llvm::find(kNames, name);
  if (it == std::end(kNames))
    return std::nullopt;
  return uint32_t(it - std::begin(kNames)) + 1;
}

std::string driverName(uint32_t id) {
  return id >= 1 && id <= std::size(kNames) ? kNames[id - 1].str()
                                            : std::to_string(id);
}

} // namespace mlir::llm
