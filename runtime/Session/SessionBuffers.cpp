#include "runtime/Session/SessionBuffers.h"

#include <algorithm>
#include <cstring>

namespace sprig {

using format::BufferKind;
using vulkan::Placement;

Result<SessionBuffers> SessionBuffers::create(Model &model) {
  SessionBuffers made;
  made.device = model.device();
  const auto &buffers = *model.target().buffers();
  made.table.resize(buffers.size());
  model.addWeightBuffers(made.table);

  // Staged weights ask for the ways of a device with its own memory.
  bool unified = made.device->physical().unified() &&
                 model.weightPlacement() != WeightPlacement::Staged;
  std::vector<vulkan::BufferRequest> requests;
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const format::Buffer &buffer = *buffers.Get(i);
    Placement placement = Placement::Device;
    switch (buffer.kind()) {
    case BufferKind::weights:
      continue;
    case BufferKind::kv:
    case BufferKind::scratch:
    case BufferKind::state:
      break;
    case BufferKind::logits:
      made.logitsIndex = i;
      placement = unified ? Placement::Shared : Placement::Device;
      break;
    case BufferKind::control:
      made.controlIndex = i;
      made.controlBytes = buffer.bytes();
      placement = Placement::Shared;
      break;
    case BufferKind::history:
      made.historyIndex = i;
      placement = Placement::Shared;
      break;
    }
    requests.push_back({buffer.name()->str(), buffer.bytes(), placement});
    indices.push_back(i);
  }
  Result<vulkan::Buffers> owned =
      vulkan::Buffers::allocate(made.device, requests);
  if (!owned.ok())
    return owned.status().within("session");
  made.owned = std::move(*owned);
  for (size_t i = 0; i < indices.size(); ++i) {
    made.table[indices[i]] = made.owned.handle(i);
    if (indices[i] == made.historyIndex)
      made.mappedHistory = static_cast<const uint32_t *>(made.owned.mapped(i));
    if (indices[i] == made.controlIndex)
      made.mappedControl = static_cast<const uint32_t *>(made.owned.mapped(i));
    if (indices[i] == made.logitsIndex && unified)
      made.mappedLogits = static_cast<const float *>(made.owned.mapped(i));
  }
  return made;
}

uint64_t SessionBuffers::allocated() const {
  return owned.allocated() + readback.allocated();
}

Status
SessionBuffers::runOnce(vulkan::CommandPool &pool,
                        const std::function<void(VkCommandBuffer)> &record) {
  Result<vulkan::Fence> fence = vulkan::Fence::create(device);
  if (!fence.ok())
    return fence.status();
  Result<VkCommandBuffer> commands = pool.allocate();
  if (!commands.ok())
    return commands.status();
  auto run = [&]() -> Status {
    if (Status status =
            pool.begin(*commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
        !status.ok())
      return status;
    record(*commands);
    if (Status status = pool.end(*commands); !status.ok())
      return status;
    if (Status status = device->submit(&*commands, 1, fence->handle());
        !status.ok())
      return status;
    return fence->wait("copy");
  };
  Status status = run();
  pool.free(*commands);
  return status;
}

Status SessionBuffers::readLogits(vulkan::CommandPool &pool, uint32_t rows,
                                  uint32_t vocabulary, float *out) {
  uint64_t bytes = 4 * uint64_t(rows) * vocabulary;
  readBytes += bytes;
  if (mappedLogits) {
    std::memcpy(out, mappedLogits, bytes);
    return {};
  }
  if (readback.size() == 0 || readback.bytes(0) < bytes) {
    readback = {};
    Result<vulkan::Buffers> made = vulkan::Buffers::allocate(
        device, {{"logits for the host", bytes, Placement::Readback}});
    if (!made.ok())
      return made.status();
    readback = std::move(*made);
  }
  const vulkan::DeviceFunctions &vk = device->functions();
  Status status = runOnce(pool, [&](VkCommandBuffer commands) {
    VkBufferCopy region{0, 0, bytes};
    vk.CmdCopyBuffer(commands, table[logitsIndex], readback.handle(0), 1,
                     &region);
    vulkan::recordBarrier(vk, commands, vulkan::kCopyToAny);
  });
  if (status.ok())
    std::memcpy(out, readback.mapped(0), bytes);
  return status;
}

Status SessionBuffers::fill(vulkan::CommandPool &pool,
                            const format::Target &target,
                            std::optional<uint32_t> word) {
  const auto wordOf = [&](uint32_t i) -> std::optional<uint32_t> {
    const BufferKind kind = target.buffers()->Get(i)->kind();
    if (kind == BufferKind::kv || kind == BufferKind::scratch)
      return word;
    return kind == BufferKind::state ? std::optional<uint32_t>(0)
                                     : std::nullopt;
  };
  const uint32_t count = target.buffers()->size();
  bool any = false;
  for (uint32_t i = 0; i < count; ++i)
    any |= wordOf(i).has_value();
  if (!any)
    return {};
  const vulkan::DeviceFunctions &vk = device->functions();
  return runOnce(pool, [&](VkCommandBuffer commands) {
    for (uint32_t i = 0; i < count; ++i)
      if (std::optional<uint32_t> with = wordOf(i))
        vk.CmdFillBuffer(commands, table[i], 0, VK_WHOLE_SIZE, *with);
    vulkan::recordBarrier(vk, commands, vulkan::kCopyToAny);
  });
}

namespace {

/// Regions cut into copies that fit one staging buffer.
struct Piece {
  std::vector<std::pair<uint32_t, VkBufferCopy>> copies; ///< target's buffer
  uint64_t bytes = 0;
};

constexpr uint64_t kStagingBytes = 8u << 20;

std::vector<Piece> cut(const std::vector<session_file::Region> &regions) {
  std::vector<Piece> pieces;
  for (const session_file::Region &region : regions)
    for (uint64_t done = 0; done < region.bytes;) {
      if (pieces.empty() || pieces.back().bytes == kStagingBytes)
        pieces.emplace_back();
      Piece &piece = pieces.back();
      const uint64_t count =
          std::min(region.bytes - done, kStagingBytes - piece.bytes);
      piece.copies.push_back(
          {region.buffer, {region.offset + done, piece.bytes, count}});
      piece.bytes += count;
      done += count;
    }
  return pieces;
}

} // namespace

Status SessionBuffers::copyOut(
    vulkan::CommandPool &pool,
    const std::vector<session_file::Region> &regions,
    const std::function<Status(const void *, uint64_t)> &sink) {
  const std::vector<Piece> pieces = cut(regions);
  if (pieces.empty())
    return {};
  Result<vulkan::Buffers> staging = vulkan::Buffers::allocate(
      device, {{"session staging", kStagingBytes, Placement::Readback}});
  if (!staging.ok())
    return staging.status();
  const vulkan::DeviceFunctions &vk = device->functions();
  for (const Piece &piece : pieces) {
    Status status = runOnce(pool, [&](VkCommandBuffer commands) {
      for (const auto &[buffer, copy] : piece.copies)
        vk.CmdCopyBuffer(commands, table[buffer], staging->handle(0), 1, &copy);
      vulkan::recordBarrier(vk, commands, vulkan::kKernelToAny);
    });
    if (status.ok())
      status = sink(staging->mapped(0), piece.bytes);
    if (!status.ok())
      return status;
  }
  return {};
}

Status
SessionBuffers::copyIn(vulkan::CommandPool &pool,
                       const std::vector<session_file::Region> &regions,
                       const uint8_t *from) {
  const std::vector<Piece> pieces = cut(regions);
  if (pieces.empty())
    return {};
  Result<vulkan::Buffers> staging = vulkan::Buffers::allocate(
      device, {{"session staging", kStagingBytes, Placement::Upload}});
  if (!staging.ok())
    return staging.status();
  const vulkan::DeviceFunctions &vk = device->functions();
  for (const Piece &piece : pieces) {
    std::memcpy(staging->mapped(0), from, piece.bytes);
    from += piece.bytes;
    Status status = runOnce(pool, [&](VkCommandBuffer commands) {
      for (const auto &[buffer, copy] : piece.copies) {
        const VkBufferCopy back{copy.dstOffset, copy.srcOffset, copy.size};
        vk.CmdCopyBuffer(commands, staging->handle(0), table[buffer], 1, &back);
      }
      vulkan::recordBarrier(vk, commands, vulkan::kCopyToAny);
    });
    if (!status.ok())
      return status;
  }
  return {};
}

} // namespace sprig
