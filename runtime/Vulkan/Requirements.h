//===- Requirements.h - which target of a package fits a device
//---------------===//
#pragma once

#include "runtime/Format/Package_generated.h"
#include "runtime/Vulkan/PhysicalDevice.h"

#include <string>
#include <vector>

namespace sprig::vulkan {

/// What `device` lacks for `target`, in words ("storage_16bit", "32768 bytes of
/// shared memory (it has 16384)"); empty when the target fits. Covers features,
/// every limit that the target names, and the limits that its kernels and
/// dispatches really use.
std::vector<std::string> missing(const format::Target &target,
                                 const PhysicalDevice &device);

/// The index of the best target that fits (see `Target` in Format/Package.fbs),
/// or of the one called `wanted`. The error lists what is missing for each.
Result<uint32_t> chooseTarget(const format::Package &package,
                              const PhysicalDevice &device,
                              const std::string &wanted);

} // namespace sprig::vulkan
