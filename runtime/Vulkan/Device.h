//===- Device.h - an opened device and its queue
//------------------------------===//
#pragma once

#include "runtime/Vulkan/PhysicalDevice.h"

#include <atomic>
#include <functional>
#include <mutex>

namespace sprig::vulkan {

struct DeviceOptions {
  /// Package features to switch on; the device has to support them.
  std::vector<format::Feature> features;
  /// Out-of-range accesses of storage buffers stay harmless, where the device
  /// can promise it.
  bool robust = true;
  /// Pipelines keep the driver's statistics (`llm-inspect --stats`).
  bool statistics = false;
  /// May replace functions; for tests that make calls fail.
  std::function<void(DeviceFunctions &)> intercept;
};

class Device {
public:
  static Result<std::shared_ptr<Device>>
  create(std::shared_ptr<Instance> instance, const PhysicalDevice &physical,
         const DeviceOptions &options);
  ~Device();
  Device(const Device &) = delete;

  VkDevice handle() const { return device; }
  const DeviceFunctions &functions() const { return vk; }
  const PhysicalDevice &physical() const { return chosen; }
  const Instance &instance() const { return *owner; }
  bool robust() const { return robustAccess; }
  bool statistics() const { return keepsStatistics; }
  bool canImport() const { return imports; }
  /// Pipelines can be asked whether the cache had them.
  bool feedback() const { return givesFeedback; }

  /// Submits the buffers in order. Thread-safe.
  Status submit(const VkCommandBuffer *buffers, uint32_t count, VkFence fence);
  /// Waits for everything submitted. Thread-safe.
  Status waitIdle();

private:
  Device() = default;

  std::shared_ptr<Instance> owner;
  PhysicalDevice chosen;
  DeviceFunctions vk;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queueMutex;
  std::atomic<bool> used{false}; ///< something was submitted
  bool robustAccess = false, keepsStatistics = false, imports = false,
       givesFeedback = false;
};

} // namespace sprig::vulkan
