//===- Weights.h - the weight section as device buffers
//------------------------===//
#pragma once

#include "runtime/Package/Package.h"
#include "runtime/Vulkan/Buffers.h"

namespace sprig {

/// How weights reach the device.
enum class WeightPlacement {
  Auto,    ///< in place where the device allows it, otherwise copied
  InPlace, ///< the file's own pages (VK_EXT_external_memory_host), or an error
  Mapped,  ///< copied by the host into mapped device memory, or an error
  Staged   ///< copied by the device from a small staging buffer
};

const char *nameOf(WeightPlacement placement);

/// The target's buffers of kind `weights`.
struct Weights {
  vulkan::Buffers buffers;
  std::vector<uint32_t> indices; ///< of the target's buffer table
  WeightPlacement placement = WeightPlacement::Auto; ///< the one used
};

/// Whether `Auto` would use the file's pages on this device (a plan; a driver
/// may still refuse, and then they are copied).
bool expectsInPlace(const vulkan::Device &device, WeightPlacement placement);

Result<Weights> loadWeights(std::shared_ptr<vulkan::Device> device,
                            const Package &package,
                            const format::Target &target,
                            WeightPlacement placement);

} // namespace sprig
