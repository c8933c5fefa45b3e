#include "runtime/Vulkan/CommandPool.h"
#include "runtime/Vulkan/Result.h"

namespace sprig::vulkan {
namespace {

constexpr VkPipelineStageFlags kKernel = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kKernelInputs =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkPipelineStageFlags kCopy = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kKernelUse =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
    VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
constexpr VkAccessFlags kCopyUse =
    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

} // namespace

// Submitting makes host writes visible by itself, so they need no mention.
const MemoryBarrier kKernelToKernel{kKernel, VK_ACCESS_SHADER_WRITE_BIT,
                                    kKernelInputs, kKernelUse};
const MemoryBarrier kAnyToKernel{
    kKernel | kCopy, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    kKernelInputs, kKernelUse};
const MemoryBarrier kKernelToAny{
    kKernel | kCopy, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    kCopy | VK_PIPELINE_STAGE_HOST_BIT, kCopyUse | VK_ACCESS_HOST_READ_BIT};
const MemoryBarrier kCopyToAny{kCopy, VK_ACCESS_TRANSFER_WRITE_BIT,
                               kKernelInputs | kCopy |
                                   VK_PIPELINE_STAGE_HOST_BIT,
                               kKernelUse | kCopyUse | VK_ACCESS_HOST_READ_BIT};

void recordBarrier(const DeviceFunctions &vk, VkCommandBuffer buffer,
                   const MemoryBarrier &barrier) {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = barrier.written;
  memory.dstAccessMask = barrier.used;
  vk.CmdPipelineBarrier(buffer, barrier.from, barrier.to, 0, 1, &memory, 0,
                        nullptr, 0, nullptr);
}

Result<std::shared_ptr<CommandPool>>
CommandPool::create(std::shared_ptr<Device> device) {
  std::shared_ptr<CommandPool> made(new CommandPool);
  made->owner = std::move(device);
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = made->owner->physical().queueFamily;
  VkResult result = made->owner->functions().CreateCommandPool(
      made->owner->handle(), &info, nullptr, &made->pool);
  if (Status status = checked(result, "vkCreateCommandPool"); !status.ok())
    return status;
  return made;
}

CommandPool::~CommandPool() {
  if (pool)
    owner->functions().DestroyCommandPool(owner->handle(), pool, nullptr);
}

Result<VkCommandBuffer> CommandPool::allocate() {
  VkCommandBufferAllocateInfo info{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  VkResult result = owner->functions().AllocateCommandBuffers(owner->handle(),
                                                              &info, &buffer);
  if (Status status = checked(result, "vkAllocateCommandBuffers"); !status.ok())
    return status;
  return buffer;
}

void CommandPool::free(VkCommandBuffer buffer) {
  if (buffer)
    owner->functions().FreeCommandBuffers(owner->handle(), pool, 1, &buffer);
}

Status CommandPool::begin(VkCommandBuffer buffer,
                          VkCommandBufferUsageFlags usage) {
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = usage;
  return checked(owner->functions().BeginCommandBuffer(buffer, &info),
                 "vkBeginCommandBuffer");
}

Status CommandPool::end(VkCommandBuffer buffer) {
  return checked(owner->functions().EndCommandBuffer(buffer),
                 "vkEndCommandBuffer");
}

Result<Fence> Fence::create(std::shared_ptr<Device> device) {
  Fence made;
  made.device = std::move(device);
  VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult result = made.device->functions().CreateFence(
      made.device->handle(), &info, nullptr, &made.fence);
  if (Status status = checked(result, "vkCreateFence"); !status.ok())
    return status;
  return made;
}

Fence &Fence::operator=(Fence &&other) noexcept {
  std::swap(device, other.device);
  std::swap(fence, other.fence);
  return *this;
}

Fence::~Fence() {
  if (fence)
    device->functions().DestroyFence(device->handle(), fence, nullptr);
}

Status Fence::wait(std::string_view what) const {
  return checked(device->functions().WaitForFences(device->handle(), 1, &fence,
                                                   VK_TRUE, UINT64_MAX),
                 "vkWaitForFences", what);
}

Status Fence::reset() const {
  return checked(device->functions().ResetFences(device->handle(), 1, &fence),
                 "vkResetFences");
}

} // namespace sprig::vulkan
