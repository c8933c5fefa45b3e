//===- PipelineCache.h - compiled pipelines kept on disk
//----------------------===//
#pragma once

#include "runtime/Vulkan/Device.h"

namespace sprig::vulkan {

/// The folder used when none is named: $XDG_CACHE_HOME/sprig, ~/.cache/sprig,
/// or empty where neither is known.
std::string defaultCacheFolder();

/// A VkPipelineCache that starts from FOLDER/DEVICE-DRIVER.pipelines (both
/// UUIDs) and is written back there. A file that is damaged, or of another
/// driver, is ignored: it is a cache.
class PipelineCache {
public:
  /// `folder` empty: in memory only.
  static Result<std::shared_ptr<PipelineCache>>
  open(std::shared_ptr<Device> device, const std::string &folder);
  ~PipelineCache();
  PipelineCache(const PipelineCache &) = delete;

  VkPipelineCache handle() const { return cache; }
  /// Bytes that were read from disk.
  uint64_t loadedBytes() const { return loaded; }
  const std::string &path() const { return file; }

  /// Writes the file aside and renames it, where the cache grew since it was
  /// read. Failing to write is an IoError that callers may ignore.
  Status save();

private:
  PipelineCache() = default;

  std::shared_ptr<Device> device;
  VkPipelineCache cache = VK_NULL_HANDLE;
  std::string file;
  uint64_t loaded = 0;
};

} // namespace sprig::vulkan
