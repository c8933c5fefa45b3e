#include "runtime/Model/Weights.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/CommandPool.h"

#include <algorithm>
#include <cstring>

namespace sprig {
namespace {

using vulkan::Buffers;
using vulkan::CommandPool;
using vulkan::Device;
using vulkan::Fence;
using vulkan::Placement;

/// Bytes that travel at once; two pieces are under way.
constexpr uint64_t kPiece = 4u << 20;

Result<Buffers> allocate(std::shared_ptr<Device> device,
                         const format::Target &target, const Weights &weights,
                         Placement placement) {
  std::vector<vulkan::BufferRequest> requests;
  for (uint32_t i : weights.indices) {
    const format::Buffer &buffer = *target.buffers()->Get(i);
    requests.push_back({buffer.name()->str(), buffer.bytes(), placement});
  }
  return Buffers::allocate(std::move(device), requests);
}

Result<Buffers> importInPlace(std::shared_ptr<Device> device,
                              const Package &package,
                              const format::Target &target,
                              const Weights &weights) {
  std::vector<vulkan::ImportSpan> spans;
  for (uint32_t i : weights.indices) {
    const format::Buffer &buffer = *target.buffers()->Get(i);
    spans.push_back(
        {buffer.name()->str(), buffer.file_offset(), buffer.bytes()});
  }
  return Buffers::import(std::move(device), package.weights(),
                         package.weightBytes(), spans);
}

/// One piece: a staging buffer, its command buffer and its fence.
struct Lane {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  Fence fence;
  bool busy = false;
};

Status stage(std::shared_ptr<Device> device, const Package &package,
             const format::Target &target, const Weights &weights) {
  Result<std::shared_ptr<CommandPool>> pool = CommandPool::create(device);
  if (!pool.ok())
    return pool.status();
  Result<Buffers> staging = Buffers::allocate(
      device, {{"weight staging", kPiece, Placement::Upload},
               {"weight staging", kPiece, Placement::Upload}});
  if (!staging.ok())
    return staging.status();
  Lane lanes[2];
  for (Lane &lane : lanes) {
    Result<VkCommandBuffer> commands = (*pool)->allocate();
    if (!commands.ok())
      return commands.status();
    Result<Fence> fence = Fence::create(device);
    if (!fence.ok())
      return fence.status();
    lane.commands = *commands;
    lane.fence = std::move(*fence);
  }
  auto finish = [](Lane &lane) -> Status {
    if (!lane.busy)
      return {};
    lane.busy = false;
    if (Status status = lane.fence.wait("weights"); !status.ok())
      return status;
    return lane.fence.reset();
  };
  auto copy = [&](Lane &lane, size_t index, VkBuffer to, uint64_t offset,
                  uint64_t bytes) -> Status {
    Status status = (*pool)->begin(lane.commands,
                                   VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    if (!status.ok())
      return status;
    VkBufferCopy region{0, offset, bytes};
    const vulkan::DeviceFunctions &vk = device->functions();
    vk.CmdCopyBuffer(lane.commands, staging->handle(index), to, 1, &region);
    vulkan::recordBarrier(vk, lane.commands, vulkan::kCopyToAny);
    if (status = (*pool)->end(lane.commands); !status.ok())
      return status;
    status = device->submit(&lane.commands, 1, lane.fence.handle());
    lane.busy = status.ok();
    return status;
  };
  auto run = [&]() -> Status {
    size_t piece = 0;
    for (size_t i = 0; i < weights.indices.size(); ++i) {
      const format::Buffer &buffer = *target.buffers()->Get(weights.indices[i]);
      for (uint64_t at = 0; at < buffer.bytes(); at += kPiece, ++piece) {
        size_t index = piece % 2;
        if (Status status = finish(lanes[index]); !status.ok())
          return status;
        uint64_t bytes = std::min(kPiece, buffer.bytes() - at);
        std::memcpy(staging->mapped(index),
                    package.weights() + buffer.file_offset() + at, bytes);
        package.releaseWeights(buffer.file_offset() + at, bytes);
        if (Status status =
                copy(lanes[index], index, weights.buffers.handle(i), at, bytes);
            !status.ok())
          return status;
      }
    }
    return {};
  };
  // Whatever happens, nothing of ours is in flight when the staging dies.
  Status status = run();
  for (Lane &lane : lanes)
    if (Status finished = finish(lane); status.ok())
      status = finished;
  return status;
}

void copyMapped(const Package &package, const format::Target &target,
                const Weights &weights) {
  for (size_t i = 0; i < weights.indices.size(); ++i) {
    const format::Buffer &buffer = *target.buffers()->Get(weights.indices[i]);
    for (uint64_t at = 0; at < buffer.bytes(); at += kPiece) {
      uint64_t bytes = std::min(kPiece, buffer.bytes() - at);
      std::memcpy(static_cast<char *>(weights.buffers.mapped(i)) + at,
                  package.weights() + buffer.file_offset() + at, bytes);
      package.releaseWeights(buffer.file_offset() + at, bytes);
    }
  }
}

} // namespace

const char *nameOf(WeightPlacement placement) {
  static const char *names[] = {"auto", "in place", "mapped", "staged"};
  return names[int(placement)];
}

bool expectsInPlace(const Device &device, WeightPlacement placement) {
  return placement == WeightPlacement::InPlace ||
         (placement == WeightPlacement::Auto && device.canImport() &&
          device.physical().unified());
}

Result<Weights> loadWeights(std::shared_ptr<Device> device,
                            const Package &package,
                            const format::Target &target,
                            WeightPlacement placement) {
  Weights weights;
  for (uint32_t i = 0; i < target.buffers()->size(); ++i)
    if (target.buffers()->Get(i)->kind() == format::BufferKind::weights)
      weights.indices.push_back(i);
  if (weights.indices.empty())
    return weights;

  if (placement == WeightPlacement::Auto ||
      placement == WeightPlacement::InPlace) {
    Result<Buffers> imported = importInPlace(device, package, target, weights);
    if (imported.ok()) {
      weights.buffers = std::move(*imported);
      weights.placement = WeightPlacement::InPlace;
      return weights;
    }
    if (placement == WeightPlacement::InPlace ||
        imported.status().code() != StatusCode::Unsupported)
      return imported.status().within("weights in place");
  }
  bool mapped = placement == WeightPlacement::Mapped;
  Result<Buffers> allocated = allocate(
      device, target, weights, mapped ? Placement::Shared : Placement::Device);
  if (!allocated.ok())
    return allocated.status().within("weights");
  weights.buffers = std::move(*allocated);
  weights.placement =
      mapped ? WeightPlacement::Mapped : WeightPlacement::Staged;
  if (mapped) {
    copyMapped(package, target, weights);
    return weights;
  }
  if (Status status = stage(device, package, target, weights); !status.ok())
    return status.within("copying the weights to the device");
  return weights;
}

} // namespace sprig
