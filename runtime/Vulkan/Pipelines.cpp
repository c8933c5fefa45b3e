#include "runtime/Vulkan/Pipelines.h"
#include "runtime/Format/SpirvCodec.h"
#include "runtime/Package/Commands.h"
#include "runtime/Package/Grid.h"
#include "runtime/Package/Texels.h"
#include "runtime/Support/Parallel.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <algorithm>
#include <xxhash.h>

namespace sprig::vulkan {
namespace {

uint64_t hashOf(const format::Kernel &kernel) {
  return XXH3_64bits(kernel.code()->data(), kernel.code()->size());
}

} // namespace

Pipelines::Pipelines(std::shared_ptr<Device> usedDevice,
                     std::shared_ptr<PipelineCache> usedCache,
                     const format::Target &usedTarget)
    : device(std::move(usedDevice)), cache(std::move(usedCache)),
      target(usedTarget), entries(usedTarget.kernels()->size()) {
  for (const format::Command *command : *target.commands())
    if (command->dispatch() && hasBase(*command->dispatch()))
      entries[command->dispatch()->kernel()].hasBase = true;
}

Pipelines::~Pipelines() {
  const DeviceFunctions &vk = device->functions();
  for (const Entry &entry : entries) {
    if (entry.pipeline)
      vk.DestroyPipeline(device->handle(), entry.pipeline, nullptr);
    if (entry.layout)
      vk.DestroyPipelineLayout(device->handle(), entry.layout, nullptr);
    if (entry.set)
      vk.DestroyDescriptorSetLayout(device->handle(), entry.set, nullptr);
  }
}

Status Pipelines::ensure(const std::vector<uint32_t> &kernels) {
  std::vector<uint32_t> mine;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (uint32_t kernel : kernels) {
      if (entries[kernel].state != State::Missing)
        continue;
      entries[kernel].state = State::Underway;
      mine.push_back(kernel);
    }
  }
  parallelFor(mine.size(), usefulThreads(), [&](size_t i) {
    // Filled aside: a waiter looks at the state only under the lock.
    Entry entry;
    entry.hasBase = entries[mine[i]].hasBase;
    Status status = create(mine[i], entry);
    std::lock_guard<std::mutex> lock(mutex);
    entry.state = status.ok() ? State::Ready : State::Failed;
    entry.error = std::move(status);
    entries[mine[i]] = std::move(entry);
    changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  for (uint32_t kernel : kernels) {
    changed.wait(lock, [&] { return entries[kernel].state >= State::Ready; });
    if (!entries[kernel].error.ok())
      return entries[kernel].error;
  }
  return {};
}

bool Pipelines::known(uint32_t kernel) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (entries[kernel].state == State::Ready)
      return true;
  }
  return cache->knows(hashOf(*target.kernels()->Get(kernel)));
}

void Pipelines::learn(const std::vector<uint32_t> &kernels) {
  for (uint32_t kernel : kernels)
    cache->learn(hashOf(*target.kernels()->Get(kernel)));
}

Status Pipelines::makeLayouts(const format::Kernel &kernel, Entry &entry) {
  const DeviceFunctions &vk = device->functions();
  std::string name = kernel.name()->str();
  std::vector<VkDescriptorSetLayoutBinding> bindings(kernel.bindings());
  for (uint32_t i = 0; i < kernel.bindings(); ++i) {
    bindings[i] = {i, descriptorType(kernel, i), 1, VK_SHADER_STAGE_COMPUTE_BIT,
                   nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = uint32_t(bindings.size());
  set.pBindings = bindings.data();
  if (Status status = checked(vk.CreateDescriptorSetLayout(
                                  device->handle(), &set, nullptr, &entry.set),
                              "vkCreateDescriptorSetLayout", name);
      !status.ok())
    return status;
  VkPushConstantRange constants{VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                kernel.push_constant_bytes()};
  VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &entry.set;
  layout.pushConstantRangeCount = constants.size ? 1 : 0;
  layout.pPushConstantRanges = &constants;
  return checked(vk.CreatePipelineLayout(device->handle(), &layout, nullptr,
                                         &entry.layout),
                 "vkCreatePipelineLayout", name);
}

Status Pipelines::create(uint32_t index, Entry &entry) {
  const DeviceFunctions &vk = device->functions();
  const format::Kernel &kernel = *target.kernels()->Get(index);
  std::string name = concat("kernel '", kernel.name()->string_view(), "'");
  if (Status status = makeLayouts(kernel, entry); !status.ok())
    return status;
  const std::optional<std::vector<uint32_t>> words =
      format::decodeSpirv({kernel.code()->data(), kernel.code()->size()});
  if (!words)
    return Status(StatusCode::Corrupt, "expects encoded SPIR-V").within(name);
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = 4 * words->size();
  code.pCode = words->data();
  VkShaderModule module = VK_NULL_HANDLE;
  if (Status status = checked(
          vk.CreateShaderModule(device->handle(), &code, nullptr, &module),
          "vkCreateShaderModule", name);
      !status.ok())
    return status;

  VkComputePipelineCreateInfo info{
      VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.layout = entry.layout;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = kernel.entry()->c_str();
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  size.requiredSubgroupSize = kernel.subgroup_size();
  if (kernel.subgroup_size() != 0 && device->physical().subgroupSizeControl)
    info.stage.pNext = &size;
  VkPipelineCreationFeedback feedback{}, stageFeedback{};
  VkPipelineCreationFeedbackCreateInfo asked{
      VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO};
  asked.pPipelineCreationFeedback = &feedback;
  asked.pipelineStageCreationFeedbackCount = 1;
  asked.pPipelineStageCreationFeedbacks = &stageFeedback;
  if (device->feedback())
    info.pNext = &asked;
  if (entry.hasBase)
    info.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  if (device->statistics())
    info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkResult result = vk.CreateComputePipelines(
      device->handle(), cache->handle(), 1, &info, nullptr, &entry.pipeline);
  vk.DestroyShaderModule(device->handle(), module, nullptr);
  if (Status status = checked(result, "vkCreateComputePipelines", name);
      !status.ok())
    return status;
  ++madeCount;
  constexpr auto kHit =
      VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
      VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
  if ((feedback.flags & kHit) == kHit)
    ++hitCount;
  return {};
}

VkDescriptorType descriptorType(const format::Kernel &kernel,
                                uint32_t binding) {
  if (texelFormat(kernel, binding) != 0)
    return VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  return kernel.uniform_bindings() >> binding & 1
             ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
             : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

std::vector<uint32_t> kernelsOf(const format::Target &target,
                                const format::Program &program) {
  std::vector<uint32_t> kernels;
  for (const format::Command *command : commandsOf(target, program))
    if (command->dispatch())
      kernels.push_back(command->dispatch()->kernel());
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  return kernels;
}

} // namespace sprig::vulkan
