#include "runtime/Vulkan/RecordedProgram.h"
#include "runtime/Package/Commands.h"
#include "runtime/Package/Grid.h"
#include "runtime/Package/Names.h"
#include "runtime/Package/Texels.h"
#include "runtime/Vulkan/Result.h"

#include <algorithm>
#include <map>

namespace sprig::vulkan {
namespace {

std::vector<const format::Dispatch *>
dispatchesOf(const format::Target &target, const format::Program &program) {
  std::vector<const format::Dispatch *> dispatches;
  for (const format::Command *command : commandsOf(target, program))
    if (command->dispatch())
      dispatches.push_back(command->dispatch());
  return dispatches;
}

const format::Kernel &kernelOf(const format::Target &target,
                               const format::Dispatch &dispatch) {
  return *target.kernels()->Get(dispatch.kernel());
}

} // namespace

RecordedProgram::~RecordedProgram() {
  if (!pool)
    return;
  const Device &device = pool->device();
  for (VkCommandBuffer buffer : buffers)
    pool->free(buffer);
  if (setPool)
    device.functions().DestroyDescriptorPool(device.handle(), setPool, nullptr);
  for (VkBufferView view : views)
    device.functions().DestroyBufferView(device.handle(), view, nullptr);
  if (queries)
    device.functions().DestroyQueryPool(device.handle(), queries, nullptr);
}

Status RecordedProgram::makeSets(const Pipelines &pipelines,
                                 const format::Target &target,
                                 const format::Program &program,
                                 const std::vector<VkBuffer> &buffers) {
  const Device &device = pool->device();
  const DeviceFunctions &vk = device.functions();
  std::vector<const format::Dispatch *> dispatches =
      dispatchesOf(target, program);
  if (dispatches.empty())
    return {};
  std::vector<VkDescriptorSetLayout> layouts;
  std::map<VkDescriptorType, uint32_t> counts;
  for (const format::Dispatch *dispatch : dispatches) {
    layouts.push_back(pipelines.setLayout(dispatch->kernel()));
    for (uint32_t i = 0; i < dispatch->bindings()->size(); ++i)
      ++counts[descriptorType(kernelOf(target, *dispatch), i)];
  }
  std::vector<VkDescriptorPoolSize> sizes;
  size_t total = 0;
  for (auto [type, count] : counts) {
    sizes.push_back({type, count});
    total += count;
  }
  VkDescriptorPoolCreateInfo poolInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  poolInfo.maxSets = uint32_t(dispatches.size());
  poolInfo.poolSizeCount = uint32_t(sizes.size());
  poolInfo.pPoolSizes = sizes.data();
  if (Status status =
          checked(vk.CreateDescriptorPool(device.handle(), &poolInfo, nullptr,
                                          &setPool),
                  "vkCreateDescriptorPool", nameOf(program));
      !status.ok())
    return status;
  sets.resize(dispatches.size());
  VkDescriptorSetAllocateInfo setInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  setInfo.descriptorPool = setPool;
  setInfo.descriptorSetCount = uint32_t(layouts.size());
  setInfo.pSetLayouts = layouts.data();
  if (Status status = checked(
          vk.AllocateDescriptorSets(device.handle(), &setInfo, sets.data()),
          "vkAllocateDescriptorSets", nameOf(program));
      !status.ok())
    return status;

  std::vector<VkDescriptorBufferInfo> ranges;
  std::vector<VkWriteDescriptorSet> writes;
  ranges.reserve(total); // writes point into these
  views.reserve(total);
  writes.reserve(total);
  for (size_t d = 0; d < dispatches.size(); ++d)
    for (uint32_t i = 0; i < dispatches[d]->bindings()->size(); ++i) {
      const format::Binding &binding = *dispatches[d]->bindings()->Get(i);
      const format::Kernel &kernel = kernelOf(target, *dispatches[d]);
      VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = sets[d];
      write.dstBinding = i;
      write.descriptorCount = 1;
      write.descriptorType = descriptorType(kernel, i);
      if (uint32_t format = texelFormat(kernel, i)) {
        if (Status status = makeView(buffers[binding.buffer()], binding,
                                     VkFormat(format), nameOf(program));
            !status.ok())
          return status;
        write.pTexelBufferView = &views.back();
      } else {
        ranges.push_back(
            {buffers[binding.buffer()], binding.offset(), binding.bytes()});
        write.pBufferInfo = &ranges.back();
      }
      writes.push_back(write);
    }
  vk.UpdateDescriptorSets(device.handle(), uint32_t(writes.size()),
                          writes.data(), 0, nullptr);
  return {};
}

Status RecordedProgram::makeView(VkBuffer buffer,
                                 const format::Binding &binding,
                                 VkFormat format, const std::string &name) {
  const Device &device = pool->device();
  VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = buffer;
  info.format = format;
  info.offset = binding.offset();
  info.range = binding.bytes();
  VkBufferView view = VK_NULL_HANDLE;
  Status status = checked(device.functions().CreateBufferView(
                              device.handle(), &info, nullptr, &view),
                          "vkCreateBufferView", name);
  if (status.ok())
    views.push_back(view);
  return status;
}

Status RecordedProgram::makeQueries(const format::Target &target,
                                    const format::Program &program) {
  const Device &device = pool->device();
  if (device.physical().timestampBits == 0)
    return {StatusCode::Unsupported,
            "expects a device queue with timestamps, but it has none"};
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = uint32_t(dispatchesOf(target, program).size()) + 1;
  queryCount = info.queryCount;
  return checked(device.functions().CreateQueryPool(device.handle(), &info,
                                                    nullptr, &queries),
                 "vkCreateQueryPool", nameOf(program));
}

Status RecordedProgram::begin(bool timed) {
  Result<VkCommandBuffer> allocated = pool->allocate();
  if (!allocated.ok())
    return allocated.status();
  buffers.push_back(*allocated);
  return pool->begin(*allocated,
                     timed ? 0 : VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
}

void RecordedProgram::recordDispatch(const format::Dispatch &dispatch,
                                     const Pipelines &pipelines,
                                     VkDescriptorSet set,
                                     const std::vector<VkBuffer> &memory,
                                     VkPipeline &bound) {
  const DeviceFunctions &vk = pool->device().functions();
  VkCommandBuffer buffer = buffers.back();
  uint32_t kernel = dispatch.kernel();
  VkPipelineLayout layout = pipelines.layout(kernel);
  if (VkPipeline pipeline = pipelines.pipeline(kernel); pipeline != bound) {
    vk.CmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    bound = pipeline;
  }
  vk.CmdBindDescriptorSets(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                           &set, 0, nullptr);
  if (dispatch.push_constants() && dispatch.push_constants()->size() != 0)
    vk.CmdPushConstants(buffer, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        dispatch.push_constants()->size(),
                        dispatch.push_constants()->data());
  if (hasBase(dispatch)) {
    vk.CmdDispatchBase(buffer, dispatch.base_x(), dispatch.base_y(),
                       dispatch.base_z(), dispatch.groups_x(),
                       dispatch.groups_y(), dispatch.groups_z());
    return;
  }
  if (!dispatch.indirect() || dispatch.indirect()->size() == 0) {
    vk.CmdDispatch(buffer, dispatch.groups_x(), dispatch.groups_y(),
                   dispatch.groups_z());
    return;
  }
  const format::Binding &counts = *dispatch.indirect()->Get(0);
  vk.CmdDispatchIndirect(buffer, memory[counts.buffer()], counts.offset());
}

Result<std::unique_ptr<RecordedProgram>> RecordedProgram::record(
    std::shared_ptr<CommandPool> pool, const Pipelines &pipelines,
    const format::Target &target, const format::Program &program,
    const std::vector<VkBuffer> &buffers, bool timed) {
  std::unique_ptr<RecordedProgram> made(new RecordedProgram);
  made->pool = pool;
  if (Status status = made->makeSets(pipelines, target, program, buffers);
      !status.ok())
    return status;
  if (timed)
    if (Status status = made->makeQueries(target, program); !status.ok())
      return status;
  if (Status status = made->begin(timed); !status.ok())
    return status;

  const DeviceFunctions &vk = pool->device().functions();
  VkCommandBuffer commands = made->buffers.back();
  recordBarrier(vk, commands, kAnyToKernel);
  uint32_t stamp = 0;
  auto timestamp = [&] {
    if (timed)
      vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                           made->queries, stamp++);
  };
  if (timed)
    vk.CmdResetQueryPool(commands, made->queries, 0, made->queryCount);
  timestamp();
  VkPipeline bound = VK_NULL_HANDLE;
  size_t set = 0;
  for (const format::Command *command : commandsOf(target, program)) {
    if (const format::Barrier *barrier = command->barrier()) {
      if (barrier->submit()) {
        // The barrier below orders submissions of a queue as it does commands.
        if (Status status = pool->end(commands); !status.ok())
          return status;
        if (Status status = made->begin(timed); !status.ok())
          return status;
        commands = made->buffers.back();
        bound = VK_NULL_HANDLE;
      }
      recordBarrier(vk, commands, kKernelToKernel);
      continue;
    }
    made->recordDispatch(*command->dispatch(), pipelines, made->sets[set++],
                         buffers, bound);
    timestamp();
  }
  recordBarrier(vk, commands, kKernelToAny);
  if (Status status = pool->end(commands); !status.ok())
    return status;
  return made;
}

Result<std::vector<double>> RecordedProgram::times() const {
  const Device &device = pool->device();
  std::vector<uint64_t> raw(queryCount);
  VkResult result = device.functions().GetQueryPoolResults(
      device.handle(), queries, 0, queryCount, 8 * raw.size(), raw.data(), 8,
      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (Status status = checked(result, "vkGetQueryPoolResults"); !status.ok())
    return status;
  uint32_t bits = device.physical().timestampBits;
  uint64_t mask = bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  std::vector<double> times;
  for (uint64_t value : raw)
    times.push_back(double((value - raw[0]) & mask) *
                    double(device.physical().limits().timestampPeriod));
  return times;
}

} // namespace sprig::vulkan
