#include "runtime/Vulkan/PipelineCache.h"
#include "runtime/Support/MappedFile.h"
#include "runtime/Support/OutputFile.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace sprig::vulkan {
namespace {

/// Drivers trust the bytes they are given, so the file carries a hash.
struct FileHeader {
  char magic[8];
  uint64_t bytes;
  uint64_t hash;
};
constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'G', 'V', 'P', 'C'};
/// A file that grew past this starts anew.
constexpr uint64_t kMostBytes = 64u << 20;

std::vector<char> readFile(const std::string &path,
                           const PhysicalDevice &physical) {
  Result<MappedFile> file = MappedFile::open(path);
  FileHeader head;
  VkPipelineCacheHeaderVersionOne inner;
  if (!file.ok() || file->size() < sizeof(head) + sizeof(inner))
    return {};
  std::memcpy(&head, file->data(), sizeof(head));
  const uint8_t *data = file->data() + sizeof(head);
  uint64_t bytes = file->size() - sizeof(head);
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0 ||
      head.bytes != bytes || bytes > kMostBytes ||
      XXH3_64bits(data, bytes) != head.hash)
    return {};
  std::memcpy(&inner, data, sizeof(inner));
  if (inner.vendorID != physical.properties.vendorID ||
      inner.deviceID != physical.properties.deviceID ||
      std::memcmp(inner.pipelineCacheUUID,
                  physical.properties.pipelineCacheUUID, VK_UUID_SIZE) != 0)
    return {};
  return {data, data + bytes};
}

void makeFolders(const std::string &folder) {
  for (size_t at = 1; at != std::string::npos;) {
    at = folder.find('/', at);
    mkdir(folder.substr(0, at).c_str(), 0777); // exists: fine
    if (at != std::string::npos)
      ++at;
  }
}

} // namespace

std::string defaultCacheFolder() {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/sprig";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/sprig";
  return {};
}

Result<std::shared_ptr<PipelineCache>>
PipelineCache::open(std::shared_ptr<Device> device, const std::string &folder) {
  std::shared_ptr<PipelineCache> made(new PipelineCache);
  made->device = std::move(device);
  const PhysicalDevice &physical = made->device->physical();
  std::vector<char> data;
  if (!folder.empty()) {
    made->file =
        concat(folder, "/", hex(physical.id.deviceUUID, VK_UUID_SIZE), "-",
               hex(physical.id.driverUUID, VK_UUID_SIZE), ".pipelines");
    data = readFile(made->file, physical);
  }
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  made->loaded = data.size();
  const DeviceFunctions &vk = made->device->functions();
  VkResult result = vk.CreatePipelineCache(made->device->handle(), &info,
                                           nullptr, &made->cache);
  if (Status status = checked(result, "vkCreatePipelineCache"); !status.ok())
    return status;
  return made;
}

PipelineCache::~PipelineCache() {
  if (cache)
    device->functions().DestroyPipelineCache(device->handle(), cache, nullptr);
}

Status PipelineCache::save() {
  if (file.empty())
    return {};
  const DeviceFunctions &vk = device->functions();
  size_t bytes = 0;
  VkResult result =
      vk.GetPipelineCacheData(device->handle(), cache, &bytes, nullptr);
  if (result != VK_SUCCESS || bytes == loaded || bytes > kMostBytes)
    return checked(result, "vkGetPipelineCacheData");
  std::vector<char> data(bytes);
  result =
      vk.GetPipelineCacheData(device->handle(), cache, &bytes, data.data());
  if (Status status = checked(result, "vkGetPipelineCacheData"); !status.ok())
    return status;
  FileHeader head;
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.bytes = bytes;
  head.hash = XXH3_64bits(data.data(), bytes);

  makeFolders(file.substr(0, file.rfind('/')));
  Result<OutputFile> out = OutputFile::create(file);
  if (!out.ok())
    return out.status();
  if (Status status = out->write(&head, sizeof(head)); !status.ok())
    return status;
  if (Status status = out->write(data.data(), bytes); !status.ok())
    return status;
  if (Status status = out->commit(); !status.ok())
    return status;
  loaded = bytes;
  return {};
}

} // namespace sprig::vulkan
