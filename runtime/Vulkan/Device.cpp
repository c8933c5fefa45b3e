#include "runtime/Vulkan/Device.h"
#include "runtime/Package/Names.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

namespace sprig::vulkan {
namespace {

Status loadFunctions(const InstanceFunctions &instance, VkDevice device,
                     DeviceFunctions &vk) {
#define SPRIG_LOAD(name)                                                       \
  vk.name = reinterpret_cast<PFN_vk##name>(                                    \
      instance.GetDeviceProcAddr(device, "vk" #name));
  SPRIG_DEVICE_FUNCTIONS(SPRIG_LOAD)
  SPRIG_OPTIONAL_DEVICE_FUNCTIONS(SPRIG_LOAD)
#undef SPRIG_LOAD
#define SPRIG_CHECK(name)                                                      \
  if (!vk.name)                                                                \
    return {StatusCode::Unsupported,                                           \
            "expects the Vulkan driver to know vk" #name ", but it does not"};
  SPRIG_DEVICE_FUNCTIONS(SPRIG_CHECK)
#undef SPRIG_CHECK
  return {};
}

} // namespace

Result<std::shared_ptr<Device>>
Device::create(std::shared_ptr<Instance> instance,
               const PhysicalDevice &physical, const DeviceOptions &options) {
  std::shared_ptr<Device> made(new Device);
  made->owner = instance;
  made->chosen = physical;

  std::set<std::string> wanted;
  auto enable = [&](const FeatureExtension &extension) {
    if (extension.name && physical.has(extension.name))
      wanted.insert(extension.name);
  };
  FeatureChain switches;
  for (format::Feature feature : options.features) {
    if (!physical.supports(feature))
      return Status(StatusCode::Unsupported,
                    concat("expects ", nameOf(feature), ", but the device '",
                           physical.name, "' does not have it"));
    if (VkBool32 *field = switches.field(feature))
      *field = VK_TRUE;
    if (FeatureExtension extension = extensionOf(feature);
        extension.core == 0 || physical.version < extension.core)
      enable(extension);
  }
  made->robustAccess =
      options.robust && physical.features->core.features.robustBufferAccess;
  switches.core.features.robustBufferAccess = made->robustAccess;
  if (physical.subgroupSizeControl) {
    switches.subgroupSize.subgroupSizeControl = VK_TRUE;
    switches.subgroupSize.computeFullSubgroups =
        physical.features->subgroupSize.computeFullSubgroups;
    if (physical.version < VK_API_VERSION_1_3)
      enable({VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, 0});
  }
  made->keepsStatistics = options.statistics &&
                          physical.features->executable.pipelineExecutableInfo;
  if (made->keepsStatistics) {
    switches.executable.pipelineExecutableInfo = VK_TRUE;
    enable({VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, 0});
  }
  made->imports = physical.importAlignment != 0;
  if (made->imports)
    enable({VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, 0});
  made->givesFeedback =
      physical.version >= VK_API_VERSION_1_3 ||
      physical.has(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME);
  if (physical.version < VK_API_VERSION_1_3)
    enable({VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME, 0});
  // A device that has it must be told that it is known.
  enable({"VK_KHR_portability_subset", 0});

  std::vector<const char *> extensions;
  for (const std::string &name : wanted)
    extensions.push_back(name.c_str());
  float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical.queueFamily;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  // An extension that is part of the device's Vulkan version needs no name, but
  // the structures of one that is neither core nor enabled may not be linked.
  info.pNext = switches.link(physical.version, wanted);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  const InstanceFunctions &functions = instance->functions();
  VkResult result =
      functions.CreateDevice(physical.handle, &info, nullptr, &made->device);
  if (Status status = checked(result, "vkCreateDevice", physical.name);
      !status.ok())
    return status;
  if (Status status = loadFunctions(functions, made->device, made->vk);
      !status.ok())
    return status;
  if (made->imports && !made->vk.GetMemoryHostPointerPropertiesEXT)
    made->imports = false;
  if (options.intercept)
    options.intercept(made->vk);
  made->vk.GetDeviceQueue(made->device, physical.queueFamily, 0, &made->queue);
  return made;
}

Device::~Device() {
  if (!device || !vk.DestroyDevice)
    return;
  // Mesa's drivers without hardware crash where an idle queue is waited for.
  if (used)
    vk.DeviceWaitIdle(device);
  vk.DestroyDevice(device, nullptr);
}

Status Device::submit(const VkCommandBuffer *buffers, uint32_t count,
                      VkFence fence) {
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = count;
  info.pCommandBuffers = buffers;
  used = true;
  std::lock_guard<std::mutex> lock(queueMutex);
  return checked(vk.QueueSubmit(queue, 1, &info, fence), "vkQueueSubmit",
                 chosen.name);
}

Status Device::waitIdle() {
  std::lock_guard<std::mutex> lock(queueMutex);
  return checked(vk.DeviceWaitIdle(device), "vkDeviceWaitIdle", chosen.name);
}

} // namespace sprig::vulkan
