#include "runtime/Vulkan/PipelineCache.h"
#include "runtime/Support/MappedFile.h"
#include "runtime/Support/OutputFile.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace sprig::vulkan {
namespace {

/// Drivers trust the bytes they are given, so the file carries a hash of all
/// that follows: the driver's bytes, then the kernels.
struct FileHeader {
  char magic[8];
  uint64_t bytes;   ///< of the driver
  uint64_t kernels; ///< hashes of 8 bytes
  double lost;
  uint64_t hash;
};
constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'G', 'V', 'P', '2'};
/// A file that grew past this starts anew, and so do the kernels past theirs.
constexpr uint64_t kMostBytes = 64u << 20;
constexpr uint64_t kMostKernels = 1u << 16;

struct FileContents {
  std::vector<char> data;
  std::vector<uint64_t> kernels;
  double lost = 0;
};

FileContents readFile(const std::string &path, const PhysicalDevice &physical) {
  Result<MappedFile> file = MappedFile::open(path);
  FileHeader head;
  VkPipelineCacheHeaderVersionOne inner;
  if (!file.ok() || file->size() < sizeof(head) + sizeof(inner))
    return {};
  std::memcpy(&head, file->data(), sizeof(head));
  const uint8_t *data = file->data() + sizeof(head);
  const uint64_t bytes = file->size() - sizeof(head);
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0 ||
      head.bytes > kMostBytes || head.kernels > kMostKernels ||
      head.bytes < sizeof(inner) ||
      head.bytes + head.kernels * sizeof(uint64_t) != bytes ||
      XXH3_64bits(data, bytes) != head.hash)
    return {};
  std::memcpy(&inner, data, sizeof(inner));
  if (inner.vendorID != physical.properties.vendorID ||
      inner.deviceID != physical.properties.deviceID ||
      std::memcmp(inner.pipelineCacheUUID,
                  physical.properties.pipelineCacheUUID, VK_UUID_SIZE) != 0)
    return {};
  FileContents contents;
  contents.data.assign(data, data + head.bytes);
  contents.kernels.resize(head.kernels);
  if (head.kernels != 0)
    std::memcpy(contents.kernels.data(), data + head.bytes,
                bytes - head.bytes);
  if (std::isfinite(head.lost) && head.lost > 0)
    contents.lost = head.lost;
  return contents;
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
  FileContents found;
  if (!folder.empty()) {
    made->file =
        concat(folder, "/", hex(physical.id.deviceUUID, VK_UUID_SIZE), "-",
               hex(physical.id.driverUUID, VK_UUID_SIZE), ".pipelines");
    found = readFile(made->file, physical);
  }
  made->kernels.insert(found.kernels.begin(), found.kernels.end());
  made->lostCost = found.lost;
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = found.data.size();
  info.pInitialData = found.data.data();
  made->loaded = found.data.size();
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

bool PipelineCache::knows(uint64_t kernel) const {
  std::lock_guard<std::mutex> lock(mutex);
  return kernels.count(kernel) != 0;
}

void PipelineCache::learn(uint64_t kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  if (kernels.size() >= kMostKernels)
    kernels.clear();
  changed |= kernels.insert(kernel).second;
}

double PipelineCache::lost() const {
  std::lock_guard<std::mutex> lock(mutex);
  return lostCost;
}

void PipelineCache::setLost(double cost) {
  std::lock_guard<std::mutex> lock(mutex);
  changed |= cost != lostCost;
  lostCost = cost;
}

Status PipelineCache::save() {
  if (file.empty())
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  const DeviceFunctions &vk = device->functions();
  size_t bytes = 0;
  VkResult result =
      vk.GetPipelineCacheData(device->handle(), cache, &bytes, nullptr);
  if (result != VK_SUCCESS || (bytes == loaded && !changed) ||
      bytes > kMostBytes)
    return checked(result, "vkGetPipelineCacheData");
  std::vector<char> data(bytes);
  result =
      vk.GetPipelineCacheData(device->handle(), cache, &bytes, data.data());
  if (Status status = checked(result, "vkGetPipelineCacheData"); !status.ok())
    return status;
  FileHeader head;
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.bytes = bytes;
  head.kernels = kernels.size();
  head.lost = lostCost;
  const std::vector<uint64_t> list(kernels.begin(), kernels.end());
  data.resize(bytes + list.size() * sizeof(uint64_t));
  if (!list.empty())
    std::memcpy(data.data() + bytes, list.data(), data.size() - bytes);
  head.hash = XXH3_64bits(data.data(), data.size());

  makeFolders(file.substr(0, file.rfind('/')));
  Result<OutputFile> out = OutputFile::create(file);
  if (!out.ok())
    return out.status();
  if (Status status = out->write(&head, sizeof(head)); !status.ok())
    return status;
  if (Status status = out->write(data.data(), data.size()); !status.ok())
    return status;
  if (Status status = out->commit(); !status.ok())
    return status;
  loaded = bytes;
  changed = false;
  return {};
}

} // namespace sprig::vulkan
