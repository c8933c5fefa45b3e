//===- PhysicalDevice.h - what a device is and can do
//-------------------------===//
#pragma once

#include "runtime/Vulkan/Features.h"
#include "runtime/Vulkan/Instance.h"

#include <set>
#include <string>
#include <vector>

namespace sprig::vulkan {

/// Everything that is asked of a device once, before it is opened.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name;
  std::string driver; ///< "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  VkDriverId driverId = VkDriverId(0);
  uint32_t version = 0; ///< Vulkan version, of the instance if that is lower
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceIDProperties id{};
  VkPhysicalDeviceSubgroupProperties subgroup{};
  uint32_t minSubgroup = 0, maxSubgroup = 0;
  bool subgroupSizeControl = false; ///< a kernel can ask for a subgroup size
  uint64_t maxAllocation = 0;       ///< of one vkAllocateMemory
  uint64_t importAlignment = 0;     ///< of imported host pointers; 0: cannot
  std::set<std::string> extensions;
  std::shared_ptr<FeatureChain> features;
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t queueFamily = 0;
  uint32_t timestampBits = 0;

  const VkPhysicalDeviceLimits &limits() const { return properties.limits; }
  bool has(const char *extension) const { return extensions.count(extension); }
  /// "discrete GPU", "integrated GPU", "virtual GPU", "CPU", "other".
  const char *kind() const;
  /// Device and host share one memory.
  bool unified() const;
  bool supports(format::Feature feature) const;
};

/// Free bytes of a device's largest device-local heap: the driver's budget
/// where it tells one, otherwise the heap's size.
uint64_t availableMemory(const Instance &instance,
                         const PhysicalDevice &device);

/// All devices that can run compute shaders, as the loader orders them.
Result<std::vector<PhysicalDevice>> listDevices(const Instance &instance);

/// The device that `wanted` names: an index in `devices`, or a part of one
/// device's name in any case. Empty: the first of the most capable kind
/// (discrete, integrated, virtual, CPU).
Result<PhysicalDevice> chooseDevice(const std::vector<PhysicalDevice> &devices,
                                    const std::string &wanted);

} // namespace sprig::vulkan
