#include "Device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <sys/resource.h>
#include <vulkan/vulkan.h>

// Vulkan's structures are meant to be named by type and zeroed for the rest.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace mlir::llm::test {

namespace {

/// A pipeline and its layouts; kept for the life of the device, since drivers
/// compile at the first dispatch.
struct Pipeline {
  VkDescriptorSetLayout setLayout = nullptr;
  VkPipelineLayout layout = nullptr;
  VkShaderModule module = nullptr;
  VkPipeline pipeline = nullptr;
};

/// All objects of one run, freed together.
struct Run {
  VkDevice device;
  const Pipeline *pipeline = nullptr;
  std::vector<VkBuffer> buffers;
  std::vector<VkDeviceMemory> memories;
  std::vector<VkBufferView> views;
  std::vector<void *> mapped;
  VkDescriptorPool pool = nullptr;
  VkDescriptorSet set = nullptr;
  ~Run() {
    vkDestroyDescriptorPool(device, pool, nullptr);
    for (VkBufferView view : views)
      vkDestroyBufferView(device, view, nullptr);
    for (VkBuffer buffer : buffers)
      vkDestroyBuffer(device, buffer, nullptr);
    for (VkDeviceMemory memory : memories)
      vkFreeMemory(device, memory, nullptr);
  }
};

#define TRY(call)                                                              \
  if (VkResult result = (call); result != VK_SUCCESS)                          \
  return #call " returned " + std::to_string(result)

VkDescriptorType typeOf(const KernelBinding &binding) {
  if (binding.texel != TexelFormat::None)
    return VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  return binding.uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                         : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

} // namespace

struct Device::State {
  VkInstance instance = nullptr;
  VkPhysicalDevice physical = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;
  VkCommandPool commands = nullptr;
  VkPhysicalDeviceMemoryProperties memory{};
  std::string name;
  uint32_t subgroup = 0;
  bool dots = false;
  std::map<std::vector<uint32_t>, Pipeline> pipelines;

  std::string begin(const KernelInterface &interface,
                    const std::vector<uint32_t> &spirv,
                    const std::vector<Bytes> &buffers, Run &run);
  uint32_t hostMemory(uint32_t allowed) const {
    const VkMemoryPropertyFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
      if ((allowed >> i & 1) &&
          (memory.memoryTypes[i].propertyFlags & want) == want)
        return i;
    return 0;
  }
};

static std::string makePipeline(const KernelInterface &interface,
                                const std::vector<uint32_t> &spirv,
                                Pipeline &made, VkDevice device) {
  std::vector<VkDescriptorSetLayoutBinding> slots;
  for (const KernelBinding &binding : interface.bindings)
    slots.push_back({uint32_t(slots.size()), typeOf(binding), 1,
                     VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  VkDescriptorSetLayoutCreateInfo setInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  setInfo.bindingCount = uint32_t(slots.size());
  setInfo.pBindings = slots.data();
  TRY(vkCreateDescriptorSetLayout(device, &setInfo, nullptr, &made.setLayout));
  VkPipelineLayoutCreateInfo layoutInfo{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layoutInfo.setLayoutCount = 1;
  layoutInfo.pSetLayouts = &made.setLayout;
  TRY(vkCreatePipelineLayout(device, &layoutInfo, nullptr, &made.layout));
  VkShaderModuleCreateInfo moduleInfo{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  moduleInfo.codeSize = spirv.size() * 4;
  moduleInfo.pCode = spirv.data();
  TRY(vkCreateShaderModule(device, &moduleInfo, nullptr, &made.module));
  VkComputePipelineCreateInfo pipelineInfo{
      VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  pipelineInfo.stage.sType =
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipelineInfo.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipelineInfo.stage.module = made.module;
  pipelineInfo.stage.pName = "main";
  pipelineInfo.layout = made.layout;
  TRY(vkCreateComputePipelines(device, nullptr, 1, &pipelineInfo, nullptr,
                               &made.pipeline));
  return "";
}

/// Creates everything up to a bound descriptor set.
static std::string prepare(const KernelInterface &interface,
                           const std::vector<Bytes> &buffers, Run &run,
                           auto hostMemory) {
  VkDevice device = run.device;
  std::vector<VkDescriptorPoolSize> sizes;
  for (const KernelBinding &binding : interface.bindings)
    sizes.push_back({typeOf(binding), 1});
  VkDescriptorPoolCreateInfo poolInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  poolInfo.maxSets = 1;
  poolInfo.poolSizeCount = uint32_t(sizes.size());
  poolInfo.pPoolSizes = sizes.data();
  TRY(vkCreateDescriptorPool(device, &poolInfo, nullptr, &run.pool));
  VkDescriptorSetAllocateInfo allocation{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocation.descriptorPool = run.pool;
  allocation.descriptorSetCount = 1;
  allocation.pSetLayouts = &run.pipeline->setLayout;
  TRY(vkAllocateDescriptorSets(device, &allocation, &run.set));

  for (uint32_t i = 0; i < buffers.size(); ++i) {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = std::max<size_t>(buffers[i].size(), 16);
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                 VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
    VkBuffer &buffer = run.buffers.emplace_back(nullptr);
    TRY(vkCreateBuffer(device, &info, nullptr, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory.allocationSize = needs.size;
    memory.memoryTypeIndex = hostMemory(needs.memoryTypeBits);
    TRY(vkAllocateMemory(device, &memory, nullptr,
                         &run.memories.emplace_back(nullptr)));
    TRY(vkBindBufferMemory(device, buffer, run.memories.back(), 0));
    TRY(vkMapMemory(device, run.memories.back(), 0, VK_WHOLE_SIZE, 0,
                    &run.mapped.emplace_back(nullptr)));
    if (!buffers[i].empty())
      std::memcpy(run.mapped.back(), buffers[i].data(), buffers[i].size());
    VkDescriptorBufferInfo where{buffer, 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = run.set;
    write.dstBinding = i;
    write.descriptorCount = 1;
    write.descriptorType = typeOf(interface.bindings[i]);
    write.pBufferInfo = &where;
    if (interface.bindings[i].texel != TexelFormat::None) {
      VkBufferViewCreateInfo view{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
      view.buffer = buffer;
      view.format = VkFormat(interface.bindings[i].texel);
      view.range = VK_WHOLE_SIZE;
      TRY(vkCreateBufferView(device, &view, nullptr,
                             &run.views.emplace_back(nullptr)));
      write.pTexelBufferView = &run.views.back();
    }
    vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
  }
  return "";
}

std::string Device::State::begin(const KernelInterface &interface,
                                 const std::vector<uint32_t> &spirv,
                                 const std::vector<Bytes> &buffers, Run &run) {
  if (buffers.size() != interface.bindings.size())
    return "expects " + std::to_string(interface.bindings.size()) + " buffers";
  auto [it, isNew] = pipelines.try_emplace(spirv);
  if (isNew)
    if (std::string error = makePipeline(interface, spirv, it->second, device);
        !error.empty())
      return error;
  run.pipeline = &it->second;
  return prepare(interface, buffers, run,
                 [&](uint32_t allowed) { return hostMemory(allowed); });
}

/// Records and submits `dispatches` in a row, and waits.
static std::string submit(const KernelInterface &interface, uint32_t width,
                          unsigned dispatches, const Run &run,
                          VkCommandPool pool, VkQueue queue, double &seconds) {
  VkCommandBufferAllocateInfo allocation{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocation.commandPool = pool;
  allocation.commandBufferCount = 1;
  VkCommandBuffer commands;
  TRY(vkAllocateCommandBuffers(run.device, &allocation, &commands));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  TRY(vkBeginCommandBuffer(commands, &begin));
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                    run.pipeline->pipeline);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                          run.pipeline->layout, 0, 1, &run.set, 0, nullptr);
  auto groups = interface.groupsFor(width);
  VkMemoryBarrier barrier{
      VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
          VK_ACCESS_HOST_READ_BIT};
  for (unsigned i = 0; i < dispatches; ++i) {
    vkCmdDispatch(commands, groups[0], groups[1], groups[2]);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                             VK_PIPELINE_STAGE_HOST_BIT,
                         0, 1, &barrier, 0, nullptr, 0, nullptr);
  }
  TRY(vkEndCommandBuffer(commands));
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  auto start = std::chrono::steady_clock::now();
  TRY(vkQueueSubmit(queue, 1, &info, nullptr));
  TRY(vkQueueWaitIdle(queue));
  seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  vkFreeCommandBuffers(run.device, pool, 1, &commands);
  return "";
}

Device::Device() : state(std::make_unique<State>()) {}

Device::~Device() {
  if (state->device) {
    for (auto &[words, made] : state->pipelines) {
      vkDestroyPipeline(state->device, made.pipeline, nullptr);
      vkDestroyShaderModule(state->device, made.module, nullptr);
      vkDestroyPipelineLayout(state->device, made.layout, nullptr);
      vkDestroyDescriptorSetLayout(state->device, made.setLayout, nullptr);
    }
    vkDestroyCommandPool(state->device, state->commands, nullptr);
    vkDestroyDevice(state->device, nullptr);
  }
  vkDestroyInstance(state->instance, nullptr);
}

std::unique_ptr<Device> Device::open(std::string &why) {
  std::unique_ptr<Device> opened(new Device);
  State &state = *opened->state;
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo instanceInfo{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instanceInfo.pApplicationInfo = &application;
  uint32_t count = 1;
  why = "no Vulkan device";
  if (vkCreateInstance(&instanceInfo, nullptr, &state.instance) != VK_SUCCESS ||
      vkEnumeratePhysicalDevices(state.instance, &count, &state.physical) < 0 ||
      count == 0)
    return nullptr;
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup};
  vkGetPhysicalDeviceProperties2(state.physical, &properties);
  state.name = properties.properties.deviceName;
  state.subgroup = subgroup.subgroupSize;
  vkGetPhysicalDeviceMemoryProperties(state.physical, &state.memory);

  // Everything the device has is switched on, except bounds checks: a kernel
  // that reads past a buffer should not be saved by the driver, and the
  // sanitised layers are run apart.
  VkPhysicalDeviceVulkan12Features features12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features features11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &features12};
  VkPhysicalDeviceFeatures2 features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features11};
  uint32_t extensions = 0;
  vkEnumerateDeviceExtensionProperties(state.physical, nullptr, &extensions,
                                       nullptr);
  std::vector<VkExtensionProperties> known(extensions);
  vkEnumerateDeviceExtensionProperties(state.physical, nullptr, &extensions,
                                       known.data());
  const char *dotExtension = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  const bool knowsDots =
      std::any_of(known.begin(), known.end(), [&](const auto &extension) {
        return std::strcmp(extension.extensionName, dotExtension) == 0;
      });
  if (knowsDots)
    features12.pNext = &dots;
  bool modern = properties.properties.apiVersion >= VK_API_VERSION_1_2;
  if (!modern)
    features.pNext = nullptr;
  vkGetPhysicalDeviceFeatures2(state.physical, &features);
  features.features.robustBufferAccess = VK_FALSE;
  float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo deviceInfo{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                &features};
  deviceInfo.queueCreateInfoCount = 1;
  deviceInfo.pQueueCreateInfos = &queue;
  // With SPIR-V 1.6, which Vulkan 1.3 takes.
  state.dots = properties.properties.apiVersion >= VK_API_VERSION_1_3 &&
               dots.shaderIntegerDotProduct;
  if (state.dots) {
    deviceInfo.enabledExtensionCount = 1;
    deviceInfo.ppEnabledExtensionNames = &dotExtension;
  }
  VkCommandPoolCreateInfo poolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  if (vkCreateDevice(state.physical, &deviceInfo, nullptr, &state.device) !=
          VK_SUCCESS ||
      vkCreateCommandPool(state.device, &poolInfo, nullptr, &state.commands) !=
          VK_SUCCESS) {
    why = "cannot create a device on " + state.name;
    return nullptr;
  }
  vkGetDeviceQueue(state.device, 0, 0, &state.queue);
  return opened;
}

std::string Device::run(const KernelInterface &interface,
                        const std::vector<uint32_t> &spirv,
                        std::vector<Bytes> &buffers, uint32_t width) {
  Run run{state->device};
  std::string error = state->begin(interface, spirv, buffers, run);
  double seconds;
  if (error.empty())
    error = submit(interface, width, 1, run, state->commands, state->queue,
                   seconds);
  if (error.empty())
    for (size_t i = 0; i < buffers.size(); ++i)
      if (interface.bindings[i].access != Access::Read && !buffers[i].empty())
        std::memcpy(buffers[i].data(), run.mapped[i], buffers[i].size());
  return error;
}

std::optional<Device::Seconds> Device::time(const KernelInterface &interface,
                                            const std::vector<uint32_t> &spirv,
                                            std::vector<Bytes> &buffers,
                                            uint32_t width, unsigned dispatches,
                                            unsigned rounds) {
  Run run{state->device};
  auto used = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval &time) {
      return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  if (!state->begin(interface, spirv, buffers, run).empty())
    return std::nullopt;
  Seconds best{1e9, 1e9};
  for (unsigned i = 0; i < rounds; ++i) {
    double wall, before = used();
    if (!submit(interface, width, dispatches, run, state->commands,
                state->queue, wall)
             .empty())
      return std::nullopt;
    best.wall = std::min(best.wall, wall / dispatches);
    best.processor = std::min(best.processor, (used() - before) / dispatches);
  }
  return best;
}

const std::string &Device::name() const { return state->name; }
uint32_t Device::subgroupSize() const { return state->subgroup; }
bool Device::dotProducts() const { return state->dots; }
bool Device::lavapipe() const {
  return state->name.find("llvmpipe") != std::string::npos;
}

static std::string missing;

Device *device() {
  static std::unique_ptr<Device> opened = Device::open(missing);
  return opened.get();
}

const std::string &deviceMissing() {
  device();
  return missing;
}

} // namespace mlir::llm::test
