//===- PipelineWorker.h - pipelines made while others are used
//--------------------===//
#pragma once

#include "runtime/Vulkan/Pipelines.h"

#include <thread>

namespace sprig::vulkan {

/// Makes pipelines that are not needed yet, one after the other on a thread of
/// its own, so that they are there, and in the cache, when they are. Only for
/// drivers that compile when a pipeline is made, and not on the processors that
/// the steps run on.
class PipelineWorker {
public:
  /// `pipelines` has to outlive the object.
  explicit PipelineWorker(Pipelines &pipelines) : pipelines(pipelines) {}
  /// Ends after the pipeline under way.
  ~PipelineWorker();
  PipelineWorker(const PipelineWorker &) = delete;

  /// Whether the device's driver is one for which this is worth while.
  static bool pays(const PhysicalDevice &device);

  /// Makes `kernels`, too. One that fails is left to who needs it: the error
  /// comes from Pipelines::ensure then.
  void add(const std::vector<uint32_t> &kernels);
  /// Until all are made.
  void wait();

private:
  void run();

  Pipelines &pipelines;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint32_t> waiting; ///< the next one last
  bool busy = false, ended = false;
  std::thread thread;
};

} // namespace sprig::vulkan
