//===- CommandPool.h - owns command buffers; one thread at a time
//--------------===//
#pragma once

#include "runtime/Vulkan/Device.h"

namespace sprig::vulkan {

class CommandPool {
public:
  static Result<std::shared_ptr<CommandPool>>
  create(std::shared_ptr<Device> device);
  ~CommandPool();
  CommandPool(const CommandPool &) = delete;

  /// A new primary command buffer; it lives as long as the pool, unless it is
  /// freed, and may be recorded again with `begin`.
  Result<VkCommandBuffer> allocate();
  /// Frees one that is not under way; null is allowed.
  void free(VkCommandBuffer buffer);
  Status begin(VkCommandBuffer buffer, VkCommandBufferUsageFlags usage);
  Status end(VkCommandBuffer buffer);
  Device &device() const { return *owner; }

private:
  CommandPool() = default;

  std::shared_ptr<Device> owner;
  VkCommandPool pool = VK_NULL_HANDLE;
};

/// Work that earlier commands finish before later ones start.
struct MemoryBarrier {
  VkPipelineStageFlags from;
  VkAccessFlags written;
  VkPipelineStageFlags to;
  VkAccessFlags used;
};

/// Kernel → kernel, indirect arguments included.
extern const MemoryBarrier kKernelToKernel;
/// Kernels, copies of earlier programs and host writes → kernels.
extern const MemoryBarrier kAnyToKernel;
/// Kernels and copies → the host and copies.
extern const MemoryBarrier kKernelToAny;
/// Copies → kernels and copies.
extern const MemoryBarrier kCopyToAny;

void recordBarrier(const DeviceFunctions &vk, VkCommandBuffer buffer,
                   const MemoryBarrier &barrier);

/// A fence with its device.
class Fence {
public:
  static Result<Fence> create(std::shared_ptr<Device> device);
  Fence() = default;
  Fence(Fence &&other) noexcept { *this = std::move(other); }
  Fence &operator=(Fence &&other) noexcept;
  ~Fence();

  VkFence handle() const { return fence; }
  /// Waits without a limit: a step on a slow device may take minutes.
  Status wait(std::string_view what) const;
  Status reset() const;

private:
  std::shared_ptr<Device> device;
  VkFence fence = VK_NULL_HANDLE;
};

} // namespace sprig::vulkan
