//===- Buffers.h - buffers and the memory under them
//--------------------------===//
#pragma once

#include "runtime/Vulkan/Device.h"

namespace sprig::vulkan {

/// Where a buffer should live; each falls back to what the device has.
enum class Placement {
  Device,  ///< fast for kernels; the host cannot reach it
  Shared,  ///< device local if possible, mapped by the host
  Upload,  ///< the host writes, copies read
  Readback ///< copies write, the host reads
};

struct BufferRequest {
  std::string name; ///< for messages
  uint64_t bytes = 0;
  Placement placement = Placement::Device;
};

/// A span of host memory that becomes a buffer without a copy.
struct ImportSpan {
  std::string name;
  uint64_t offset = 0, bytes = 0;
};

/// A group of buffers that live and die together, packed into as few
/// allocations as memory types and the device's limits allow.
class Buffers {
public:
  static Result<Buffers> allocate(std::shared_ptr<Device> device,
                                  const std::vector<BufferRequest> &requests);

  /// Buffers on spans of [base, base + bytes), which has to outlive them and
  /// is only read. Unsupported where the device cannot import host memory as
  /// device-local memory; the caller then copies.
  static Result<Buffers> import(std::shared_ptr<Device> device,
                                const void *base, uint64_t bytes,
                                const std::vector<ImportSpan> &spans);

  Buffers() = default;
  Buffers(Buffers &&other) noexcept { *this = std::move(other); }
  Buffers &operator=(Buffers &&other) noexcept;
  ~Buffers();

  size_t size() const { return buffers.size(); }
  VkBuffer handle(size_t i) const { return buffers[i].buffer; }
  uint64_t bytes(size_t i) const { return buffers[i].bytes; }
  /// The host's view; null where the host cannot reach the buffer.
  void *mapped(size_t i) const { return buffers[i].mapped; }
  /// Bytes of device memory allocated; imported memory does not count.
  uint64_t allocated() const { return total; }

private:
  struct Entry {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t bytes = 0;
    void *mapped = nullptr;
    VkMemoryRequirements needs{};
    uint32_t type = 0; ///< memory type
  };

  Status createBuffer(const std::string &name, uint64_t bytes, bool imported);
  Status bindType(const std::vector<BufferRequest> &requests, uint32_t type);
  Status bindRun(const std::vector<size_t> &run, uint64_t bytes, uint32_t type,
                 bool map, const std::string &names);

  std::shared_ptr<Device> device;
  std::vector<Entry> buffers;
  std::vector<VkDeviceMemory> memories;
  uint64_t total = 0;
};

} // namespace sprig::vulkan
