#include "runtime/Vulkan/PipelineWorker.h"

namespace sprig::vulkan {

PipelineWorker::~PipelineWorker() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ended = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

bool PipelineWorker::pays(const PhysicalDevice &device) {
  return device.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
}

void PipelineWorker::add(const std::vector<uint32_t> &kernels) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    waiting.insert(waiting.begin(), kernels.rbegin(), kernels.rend());
    if (!thread.joinable())
      thread = std::thread([this] { run(); });
  }
  changed.notify_all();
}

void PipelineWorker::wait() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return waiting.empty() && !busy; });
}

void PipelineWorker::run() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return ended || !waiting.empty(); });
    if (ended)
      return;
    const std::vector<uint32_t> next = {waiting.back()};
    waiting.pop_back();
    busy = true;
    lock.unlock();
    if (pipelines.ensure(next).ok())
      pipelines.learn(next);
    lock.lock();
    busy = false;
    changed.notify_all();
  }
}

} // namespace sprig::vulkan
