//===- Pipelines.h - the compute pipelines of a target, made when needed
//-------===//
#pragma once

#include "runtime/Vulkan/PipelineCache.h"

#include <condition_variable>
#include <map>

namespace sprig::vulkan {

/// One pipeline for each kernel of a target, created on first use. Thread-safe:
/// one thread may create the pipelines of the next program while another runs
/// the current one.
class Pipelines {
public:
  /// `target` has to outlive the object.
  Pipelines(std::shared_ptr<Device> device,
            std::shared_ptr<PipelineCache> cache, const format::Target &target);
  ~Pipelines();
  Pipelines(const Pipelines &) = delete;

  /// Creates those of `kernels` that are missing, on several threads, and waits
  /// for those that other threads are creating. The error names the kernel.
  Status ensure(const std::vector<uint32_t> &kernels);

  // Valid for kernels that `ensure` has succeeded for.
  VkPipeline pipeline(uint32_t kernel) const {
    return entries[kernel].pipeline;
  }
  VkPipelineLayout layout(uint32_t kernel) const {
    return entries[kernel].layout;
  }
  VkDescriptorSetLayout setLayout(uint32_t kernel) const {
    return entries[kernel].set;
  }

  /// Whether the kernel has its pipeline, or the cache knows the kernel.
  bool known(uint32_t kernel);
  /// Tells the cache that the kernels run: only then do some drivers compile.
  void learn(const std::vector<uint32_t> &kernels);

  uint32_t created() const { return madeCount; }
  /// Of those, how many the driver took from the pipeline cache; 0 where it
  /// does not say.
  uint32_t cacheHits() const { return hitCount; }

private:
  enum class State { Missing, Underway, Ready, Failed };
  struct Entry {
    State state = State::Missing;
    bool hasBase = false; ///< parts of its grid are dispatched
    Status error;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
  };

  Status create(uint32_t kernel, Entry &entry);
  Status makeLayouts(const format::Kernel &kernel, Entry &entry);

  std::shared_ptr<Device> device;
  std::shared_ptr<PipelineCache> cache;
  const format::Target &target;
  std::vector<Entry> entries;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<uint32_t> madeCount{0}, hitCount{0};
};

/// What the kernel's binding is to Vulkan.
VkDescriptorType descriptorType(const format::Kernel &kernel, uint32_t binding);

/// The kernels that a program of the target dispatches, each once.
std::vector<uint32_t> kernelsOf(const format::Target &target,
                                const format::Program &program);

} // namespace sprig::vulkan
