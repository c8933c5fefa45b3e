//===- PipelineCache.h - compiled pipelines kept on disk
//----------------------===//
#pragma once

#include "runtime/Vulkan/Device.h"

#include <mutex>
#include <unordered_set>

namespace sprig::vulkan {

/// The folder used when none is named: $XDG_CACHE_HOME/sprig, ~/.cache/sprig,
/// or empty where neither is known.
std::string defaultCacheFolder();

/// A VkPipelineCache that starts from FOLDER/DEVICE-DRIVER.pipelines (both
/// UUIDs) and is written back there, with the kernels that were used with it: a
/// driver may keep what it compiles in a cache of its own, and no driver says
/// beforehand what it will find. A file that is damaged, or of another driver,
/// is ignored: it is a cache.
class PipelineCache {
public:
  /// `folder` empty: in memory only.
  static Result<std::shared_ptr<PipelineCache>>
  open(std::shared_ptr<Device> device, const std::string &folder);
  ~PipelineCache();
  PipelineCache(const PipelineCache &) = delete;

  VkPipelineCache handle() const { return cache; }
  const std::string &path() const { return file; }

  /// Whether a kernel of that hash was used with this cache, now or earlier.
  bool knows(uint64_t kernel) const;
  void learn(uint64_t kernel);

  /// What starts since the last pipelines of wide steps lost by doing without
  /// them (StepPlan.h), from start to start.
  double lost() const;
  void setLost(double cost);

  /// Writes the file aside and renames it, where anything changed since it was
  /// read. Failing to write is an IoError that callers may ignore.
  Status save();

private:
  PipelineCache() = default;

  std::shared_ptr<Device> device;
  VkPipelineCache cache = VK_NULL_HANDLE;
  std::string file;
  uint64_t loaded = 0; ///< bytes that the driver was given, or gave
  mutable std::mutex mutex;
  std::unordered_set<uint64_t> kernels;
  double lostCost = 0;
  bool changed = false; ///< of the two above
};

} // namespace sprig::vulkan
