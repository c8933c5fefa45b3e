#include "runtime/Vulkan/Buffers.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <algorithm>
#include <set>

namespace sprig::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kDevice = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// What each placement asks for, best first.
std::vector<VkMemoryPropertyFlags> wishes(Placement placement) {
  switch (placement) {
  case Placement::Device:
    return {kDevice, 0};
  case Placement::Shared:
    return {kDevice | kVisible | kCached, kDevice | kVisible,
            kVisible | kCached, kVisible};
  case Placement::Upload:
    return {kVisible};
  case Placement::Readback:
    return {kVisible | kCached, kVisible};
  }
  return {0};
}

/// The first memory type of `bits` with all of the best flags that any has.
uint32_t chooseType(const VkPhysicalDeviceMemoryProperties &memory,
                    uint32_t bits, Placement placement) {
  for (VkMemoryPropertyFlags flags : wishes(placement))
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
      if ((bits >> i & 1) &&
          (memory.memoryTypes[i].propertyFlags & flags) == flags)
        return i;
  return UINT32_MAX;
}

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

Buffers &Buffers::operator=(Buffers &&other) noexcept {
  std::swap(device, other.device);
  std::swap(buffers, other.buffers);
  std::swap(memories, other.memories);
  std::swap(total, other.total);
  return *this;
}

Buffers::~Buffers() {
  if (!device)
    return;
  const DeviceFunctions &vk = device->functions();
  for (const Entry &entry : buffers)
    if (entry.buffer)
      vk.DestroyBuffer(device->handle(), entry.buffer, nullptr);
  for (VkDeviceMemory memory : memories)
    vk.FreeMemory(device->handle(), memory, nullptr); // also unmaps it
}

Status Buffers::createBuffer(const std::string &name, uint64_t bytes,
                             bool imported) {
  const DeviceFunctions &vk = device->functions();
  VkExternalMemoryBufferCreateInfo external{
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.pNext = imported ? &external : nullptr;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  if (!imported)
    info.usage |=
        VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  Entry entry;
  entry.bytes = bytes;
  VkResult result =
      vk.CreateBuffer(device->handle(), &info, nullptr, &entry.buffer);
  if (Status status = checked(result, "vkCreateBuffer",
                              concat(name, ", ", humanBytes(bytes)));
      !status.ok())
    return status;
  vk.GetBufferMemoryRequirements(device->handle(), entry.buffer, &entry.needs);
  buffers.push_back(entry);
  return {};
}

Result<Buffers> Buffers::allocate(std::shared_ptr<Device> device,
                                  const std::vector<BufferRequest> &requests) {
  Buffers made;
  made.device = std::move(device);
  const VkPhysicalDeviceMemoryProperties &memory =
      made.device->physical().memory;
  std::set<uint32_t> types;
  for (const BufferRequest &request : requests) {
    Status status = made.createBuffer(request.name, request.bytes, false);
    if (!status.ok())
      return status;
    Entry &entry = made.buffers.back();
    entry.type =
        chooseType(memory, entry.needs.memoryTypeBits, request.placement);
    if (entry.type == UINT32_MAX)
      return Status(StatusCode::Unsupported,
                    concat("expects memory that the host can map for buffer '",
                           request.name, "', but the device '",
                           made.device->physical().name, "' has none"));
    types.insert(entry.type);
  }
  for (uint32_t type : types)
    if (Status status = made.bindType(requests, type); !status.ok())
      return status;
  return made;
}

/// Packs the buffers of one memory type into allocations no larger than the
/// device allows.
Status Buffers::bindType(const std::vector<BufferRequest> &requests,
                         uint32_t type) {
  uint64_t most = device->physical().maxAllocation;
  std::vector<size_t> run;
  uint64_t end = 0;
  bool map = false;
  std::string names;
  auto flush = [&]() -> Status {
    if (run.empty())
      return {};
    Status status = bindRun(run, end, type, map, names);
    run.clear();
    end = 0;
    map = false;
    names.clear();
    return status;
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].type != type)
      continue;
    uint64_t offset = alignUp(end, buffers[i].needs.alignment);
    if (!run.empty() && offset + buffers[i].needs.size > most) {
      if (Status status = flush(); !status.ok())
        return status;
      offset = 0;
    }
    run.push_back(i);
    end = offset + buffers[i].needs.size;
    map = map || requests[i].placement != Placement::Device;
    if (run.size() <= 4)
      names += concat(names.empty() ? "" : ", ", requests[i].name);
    else if (run.size() == 5)
      names += ", ...";
  }
  return flush();
}

Status Buffers::bindRun(const std::vector<size_t> &run, uint64_t bytes,
                        uint32_t type, bool map, const std::string &names) {
  const DeviceFunctions &vk = device->functions();
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::string what = concat(names, ", ", humanBytes(bytes));
  if (Status status =
          checked(vk.AllocateMemory(device->handle(), &info, nullptr, &memory),
                  "vkAllocateMemory", what);
      !status.ok())
    return status;
  memories.push_back(memory);
  total += bytes;
  uint8_t *base = nullptr;
  if (map) {
    void *address = nullptr;
    if (Status status = checked(vk.MapMemory(device->handle(), memory, 0,
                                             VK_WHOLE_SIZE, 0, &address),
                                "vkMapMemory", what);
        !status.ok())
      return status;
    base = static_cast<uint8_t *>(address);
  }
  uint64_t offset = 0;
  for (size_t i : run) {
    Entry &entry = buffers[i];
    offset = alignUp(offset, entry.needs.alignment);
    if (Status status = checked(
            vk.BindBufferMemory(device->handle(), entry.buffer, memory, offset),
            "vkBindBufferMemory", what);
        !status.ok())
      return status;
    entry.mapped = base ? base + offset : nullptr;
    offset += entry.needs.size;
  }
  return {};
}

Result<Buffers> Buffers::import(std::shared_ptr<Device> device,
                                const void *base, uint64_t bytes,
                                const std::vector<ImportSpan> &spans) {
  auto unsupported = [](std::string why) {
    return Status(StatusCode::Unsupported, std::move(why));
  };
  const PhysicalDevice &physical = device->physical();
  const DeviceFunctions &vk = device->functions();
  if (!device->canImport() || !physical.unified())
    return unsupported("the device cannot use host memory as its own");
  // The import covers whole units of the device's alignment around the bytes;
  // a mapping of a file ends on a page, so larger units may not be there.
  uint64_t unit = physical.importAlignment;
  uint64_t begin = reinterpret_cast<uintptr_t>(base) / unit * unit;
  uint64_t shift = reinterpret_cast<uintptr_t>(base) - begin;
  uint64_t length = alignUp(shift + bytes, unit);
  if (unit > 4096 && (shift != 0 || length != bytes))
    return unsupported("the device imports only units larger than a page");
  if (length > physical.maxAllocation)
    return unsupported("the device cannot import so much at once");

  constexpr auto kHandle =
      VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT properties{
      VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  void *pointer = reinterpret_cast<void *>(uintptr_t(begin));
  if (vk.GetMemoryHostPointerPropertiesEXT(device->handle(), kHandle, pointer,
                                           &properties) != VK_SUCCESS)
    return unsupported("the device refuses this host memory");

  Buffers made;
  made.device = device;
  uint32_t bits = properties.memoryTypeBits;
  for (const ImportSpan &span : spans) {
    if (Status status = made.createBuffer(span.name, span.bytes, true);
        !status.ok())
      return status;
    const VkMemoryRequirements &needs = made.buffers.back().needs;
    bits &= needs.memoryTypeBits;
    if ((shift + span.offset) % needs.alignment != 0)
      return unsupported("the device wants imported buffers on larger units");
    if (shift + span.offset + needs.size > length)
      return unsupported("the device pads imported buffers");
  }
  uint32_t type = UINT32_MAX;
  for (uint32_t i = 0; i < physical.memory.memoryTypeCount; ++i)
    if ((bits >> i & 1) &&
        (physical.memory.memoryTypes[i].propertyFlags & kDevice))
      type = std::min(type, i);
  if (type == UINT32_MAX)
    return unsupported("imported host memory is not device local here");

  VkImportMemoryHostPointerInfoEXT import{
      VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  import.handleType = kHandle;
  import.pHostPointer = pointer;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.pNext = &import;
  info.allocationSize = length;
  info.memoryTypeIndex = type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vk.AllocateMemory(device->handle(), &info, nullptr, &memory) !=
      VK_SUCCESS)
    return unsupported("the device refuses to import this host memory");
  made.memories.push_back(memory);
  for (size_t i = 0; i < spans.size(); ++i) {
    VkResult result =
        vk.BindBufferMemory(device->handle(), made.buffers[i].buffer, memory,
                            shift + spans[i].offset);
    if (Status status = checked(result, "vkBindBufferMemory", spans[i].name);
        !status.ok())
      return status;
  }
  return made;
}

} // namespace sprig::vulkan
