//===- StepQueue.h - steps submitted ahead of their results
//--------------------===//
#pragma once

#include "runtime/Format/Guesses.h"
#include "runtime/Session/Sampling.h"
#include "runtime/Vulkan/RecordedProgram.h"

#include <array>

namespace sprig {

/// What the host tells a step: tokens and their first slot. Steps without input
/// go on from where the device is.
struct StepInput {
  uint32_t base = 0;
  const uint32_t *tokens = nullptr;
  uint32_t count = 0;
  uint32_t capacity = 0;
  Sampling sampling;
  uint32_t adapter = 0; ///< of the package's, from 1; 0: none
  /// Of a tree's nodes: one a token, kNoParent at roots; null otherwise.
  const uint8_t *parents = nullptr;
  /// Of a tree whose nodes were drawn: a row of format/Guesses.h a node, what
  /// its children were drawn from; null otherwise.
  const uint32_t *rows = nullptr;
  /// The next step guesses: what the last tree accepted stays known.
  bool guesses = false;
  /// Of a step that makes room: slots that stay at the start, and those behind
  /// them that go.
  uint32_t sinks = 0, dropped = 0;
};

/// Submits recorded programs in order and waits for them in order. A few may be
/// under way at once. Not thread-safe.
class StepQueue {
public:
  /// `control` and `history` are the target's buffers of these kinds.
  static Result<std::unique_ptr<StepQueue>>
  create(std::shared_ptr<vulkan::CommandPool> pool,
         std::shared_ptr<vulkan::Device> device, VkBuffer control,
         VkBuffer history);
  ~StepQueue();
  StepQueue(const StepQueue &) = delete;

  static constexpr uint64_t kMostUnderWay = 4;

  /// Submits one step and returns its number (1, 2, …). Waits for the oldest
  /// step first where too many are under way.
  Result<uint64_t> submit(const vulkan::RecordedProgram &program,
                          const StepInput *input);
  /// Waits until step `number` and all before it are done.
  Status wait(uint64_t number);
  Status drain() { return wait(submitted); }
  uint64_t underWay() const { return submitted - finished; }

private:
  struct Slot {
    VkCommandBuffer prologue = VK_NULL_HANDLE;
    vulkan::Fence fence;
  };

  StepQueue() = default;
  Status recordPrologue(VkCommandBuffer commands, const StepInput &input);

  std::shared_ptr<vulkan::CommandPool> pool;
  std::shared_ptr<vulkan::Device> device;
  VkBuffer control = VK_NULL_HANDLE, history = VK_NULL_HANDLE;
  std::array<Slot, kMostUnderWay> slots;
  uint64_t submitted = 0, finished = 0;
};

} // namespace sprig
