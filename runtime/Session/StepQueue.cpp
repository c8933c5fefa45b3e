#include "runtime/Session/StepQueue.h"

#include <algorithm>
#include <cstring>

namespace sprig {
namespace {

/// vkCmdUpdateBuffer takes at most 64 KiB.
constexpr uint32_t kMostTokens = 65536 / 4;

/// The words of the control block that the host sets; the rest starts at 0.
std::array<uint32_t, format::Adapter + 1>
controlWords(const StepInput &input) {
  std::array<uint32_t, format::Adapter + 1> words{};
  auto number = [](float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
  };
  const Sampling &sampling = input.sampling;
  words[format::Base] = input.base;
  words[format::Count] = input.count;
  words[format::Capacity] = input.capacity;
  words[format::SeedLow] = uint32_t(sampling.seed);
  words[format::SeedHigh] = uint32_t(sampling.seed >> 32);
  words[format::Temperature] = number(sampling.temperature);
  words[format::TopK] = sampling.topK;
  words[format::TopP] = number(sampling.topP);
  words[format::MinP] = number(sampling.minP);
  words[format::RepeatPenalty] = number(sampling.repeatPenalty);
  words[format::RepeatLastN] = sampling.repeatLastN;
  words[format::Adapter] = input.adapter;
  words[format::Rounds] = input.rows ? 1 : 0;
  return words;
}

} // namespace

Result<std::unique_ptr<StepQueue>>
StepQueue::create(std::shared_ptr<vulkan::CommandPool> pool,
                  std::shared_ptr<vulkan::Device> device, VkBuffer control,
                  VkBuffer history) {
  std::unique_ptr<StepQueue> made(new StepQueue);
  made->pool = std::move(pool);
  made->device = std::move(device);
  made->control = control;
  made->history = history;
  for (Slot &slot : made->slots) {
    Result<VkCommandBuffer> commands = made->pool->allocate();
    if (!commands.ok())
      return commands.status();
    Result<vulkan::Fence> fence = vulkan::Fence::create(made->device);
    if (!fence.ok())
      return fence.status();
    slot.prologue = *commands;
    slot.fence = std::move(*fence);
  }
  return made;
}

StepQueue::~StepQueue() {
  // The command buffers and what they use may not be freed under way.
  if (device && underWay() > 0)
    (void)device->waitIdle();
}

Status StepQueue::recordPrologue(VkCommandBuffer commands,
                                 const StepInput &input) {
  const vulkan::DeviceFunctions &vk = device->functions();
  if (Status status =
          pool->begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
      !status.ok())
    return status;
  auto words = controlWords(input);
  const size_t count = input.guesses ? size_t(format::Accepted) : words.size();
  vk.CmdUpdateBuffer(commands, control, 0, 4 * count, words.data());
  if (input.dropped) {
    const uint32_t room[] = {input.sinks, input.dropped};
    vk.CmdUpdateBuffer(commands, control, 4 * format::Sinks, sizeof(room),
                       room);
  }
  if (input.parents) {
    std::array<uint32_t, format::kMostNodes / 4> packed{};
    for (uint32_t i = 0; i < input.count; ++i)
      packed[i / 4] |= uint32_t(input.parents[i]) << 8 * (i % 4);
    vk.CmdUpdateBuffer(commands, control, 4 * format::Parents, sizeof(packed),
                       packed.data());
  }
  if (input.rows)
    vk.CmdUpdateBuffer(commands, control, format::kGuessOffset,
                       4 * uint64_t(format::kGuessWords) * input.count,
                       input.rows);
  for (uint32_t at = 0; at < input.count; at += kMostTokens) {
    uint32_t count = std::min(kMostTokens, input.count - at);
    vk.CmdUpdateBuffer(commands, history, 4 * uint64_t(input.base + at),
                       4 * uint64_t(count), input.tokens + at);
  }
  vulkan::recordBarrier(vk, commands, vulkan::kCopyToAny);
  return pool->end(commands);
}

Result<uint64_t> StepQueue::submit(const vulkan::RecordedProgram &program,
                                   const StepInput *input) {
  if (underWay() == kMostUnderWay)
    if (Status status = wait(finished + 1); !status.ok())
      return status;
  Slot &slot = slots[submitted % kMostUnderWay];
  VkCommandBuffer buffers[2];
  uint32_t count = 0;
  if (input) {
    if (Status status = recordPrologue(slot.prologue, *input); !status.ok())
      return status;
    buffers[count++] = slot.prologue;
  }
  for (VkCommandBuffer commands : program.commands()) {
    buffers[count++] = commands;
    const bool last = commands == program.commands().back();
    if (Status status = device->submit(
            buffers, count, last ? slot.fence.handle() : VK_NULL_HANDLE);
        !status.ok())
      return status;
    count = 0;
  }
  return ++submitted;
}

Status StepQueue::wait(uint64_t number) {
  while (finished < number) {
    Slot &slot = slots[finished % kMostUnderWay];
    if (Status status = slot.fence.wait("step"); !status.ok())
      return status;
    if (Status status = slot.fence.reset(); !status.ok())
      return status;
    ++finished;
  }
  return {};
}

} // namespace sprig
