// Names of Vulkan drivers, as profiles spell them.
#ifndef SPRIG_CODEGEN_TARGET_DRIVERS_H
#define SPRIG_CODEGEN_TARGET_DRIVERS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::llm {

/// The number of a driver in the Vulkan registry (VkDriverId): 3 for
/// "mesa_radv", which the registry calls VK_DRIVER_ID_MESA_RADV.
std::optional<uint32_t> driverByName(llvm::StringRef name);
/// Its name, or the number where the table does not know it.
std::string driverName(uint32_t id);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_TARGET_DRIVERS_H
