#include "runtime/Vulkan/PhysicalDevice.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <algorithm>

namespace sprig::vulkan {
namespace {

std::set<std::string> extensionsOf(const InstanceFunctions &vk,
                                   VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> found(count);
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, found.data());
  found.resize(std::min<size_t>(count, found.size()));
  std::set<std::string> names;
  for (const VkExtensionProperties &extension : found)
    names.insert(extension.extensionName);
  return names;
}

/// Takes the first queue family that computes; false where there is none.
bool findQueue(const InstanceFunctions &vk, PhysicalDevice &device) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device.handle, &count,
                                            families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT))
      continue;
    device.queueFamily = i;
    device.timestampBits = families[i].timestampValidBits;
    return true;
  }
  return false;
}

/// Whether subgroups multiply 16 × 16 × 16 numbers of f16 into f32: what the
/// kernels mean by cooperative_matrix.
bool multipliesHalves(const InstanceFunctions &vk, VkPhysicalDevice device) {
  auto list = vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  uint32_t count = 0;
  if (!list || list(device, &count, nullptr) != VK_SUCCESS)
    return false;
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> shapes(count, empty);
  if (list(device, &count, shapes.data()) < 0)
    return false;
  return std::any_of(shapes.begin(), shapes.end(), [](const auto &shape) {
    return shape.MSize == 16 && shape.NSize == 16 && shape.KSize == 16 &&
           shape.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
           shape.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
           shape.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           shape.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           shape.scope == VK_SCOPE_SUBGROUP_KHR;
  });
}

void readProperties(const InstanceFunctions &vk, PhysicalDevice &device) {
  VkPhysicalDeviceProperties2 properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceDriverProperties driver{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties maintenance{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT import{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  device.id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  device.subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  auto add = [&](auto &structure, bool known) {
    if (!known)
      return;
    structure.pNext = properties.pNext;
    properties.pNext = &structure;
  };
  auto knows = [&](const char *extension, uint32_t core) {
    return available({extension, core}, device.version, device.extensions);
  };
  bool sized =
      knows(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3);
  add(device.id, true);
  add(device.subgroup, true);
  add(maintenance, true);
  add(driver,
      knows(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, VK_API_VERSION_1_2));
  add(import, device.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME));
  add(sizes, sized);
  vk.GetPhysicalDeviceProperties2(device.handle, &properties);

  device.properties = properties.properties;
  device.name = properties.properties.deviceName;
  device.driver = driver.driverName;
  if (driver.driverInfo[0])
    device.driver +=
        concat(device.driver.empty() ? "" : " ", driver.driverInfo);
  device.driverId = driver.driverID;
  device.maxAllocation = maintenance.maxMemoryAllocationSize;
  device.importAlignment = import.minImportedHostPointerAlignment;
  device.minSubgroup = device.maxSubgroup = device.subgroup.subgroupSize;
  if (sized && device.features->subgroupSize.subgroupSizeControl) {
    device.minSubgroup = sizes.minSubgroupSize;
    device.maxSubgroup = sizes.maxSubgroupSize;
    device.subgroupSizeControl =
        sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
  }
  device.id.pNext = device.subgroup.pNext = nullptr;
}

std::string lower(std::string text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'Z')
      c += 'a' - 'A';
  return text;
}

int rank(const PhysicalDevice &device) {
  switch (device.properties.deviceType) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return 3;
  default:
    return 4;
  }
}

std::string listed(const std::vector<PhysicalDevice> &devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i)
    text += concat(i ? ", " : "", i, ": ", devices[i].name);
  return text;
}

} // namespace

const char *PhysicalDevice::kind() const {
  static const char *names[] = {"discrete GPU", "integrated GPU", "virtual GPU",
                                "CPU", "other"};
  return names[rank(*this)];
}

bool PhysicalDevice::unified() const {
  return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
         properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

bool PhysicalDevice::supports(format::Feature feature) const {
  using format::Feature;
  if (const VkBool32 *field = features->field(feature))
    return *field;
  VkSubgroupFeatureFlags bit = 0;
  switch (feature) {
  case Feature::subgroup_basic:
    bit = VK_SUBGROUP_FEATURE_BASIC_BIT;
    break;
  case Feature::subgroup_vote:
    bit = VK_SUBGROUP_FEATURE_VOTE_BIT;
    break;
  case Feature::subgroup_arithmetic:
    bit = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    break;
  case Feature::subgroup_ballot:
    bit = VK_SUBGROUP_FEATURE_BALLOT_BIT;
    break;
  case Feature::subgroup_shuffle:
    bit = VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    break;
  case Feature::subgroup_shuffle_relative:
    bit = VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT;
    break;
  case Feature::subgroup_clustered:
    bit = VK_SUBGROUP_FEATURE_CLUSTERED_BIT;
    break;
  default:
    return false;
  }
  return (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (subgroup.supportedOperations & bit);
}

uint64_t availableMemory(const Instance &instance,
                         const PhysicalDevice &device) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  bool told = device.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (told)
    memory.pNext = &budget;
  instance.functions().GetPhysicalDeviceMemoryProperties2(device.handle,
                                                          &memory);
  const VkPhysicalDeviceMemoryProperties &heaps = memory.memoryProperties;
  uint64_t most = 0;
  for (uint32_t i = 0; i < heaps.memoryHeapCount; ++i) {
    if (!(heaps.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
      continue;
    uint64_t bytes = heaps.memoryHeaps[i].size;
    if (told && budget.heapBudget[i] != 0) {
      uint64_t free = budget.heapBudget[i] > budget.heapUsage[i]
                          ? budget.heapBudget[i] - budget.heapUsage[i]
                          : 0;
      bytes = std::min(bytes, free);
    }
    most = std::max(most, bytes);
  }
  return most;
}

Result<std::vector<PhysicalDevice>> listDevices(const Instance &instance) {
  const InstanceFunctions &vk = instance.functions();
  uint32_t count = 0;
  VkResult result =
      vk.EnumeratePhysicalDevices(instance.handle(), &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count > 0)
    result =
        vk.EnumeratePhysicalDevices(instance.handle(), &count, handles.data());
  // Some loaders report a driver that failed to start as an error of the list.
  if (result != VK_SUCCESS && result != VK_INCOMPLETE && count == 0)
    return checked(result, "vkEnumeratePhysicalDevices");
  handles.resize(std::min<size_t>(count, handles.size()));

  std::vector<PhysicalDevice> devices;
  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice device;
    device.handle = handle;
    VkPhysicalDeviceProperties2 first{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vk.GetPhysicalDeviceProperties2(handle, &first);
    device.version = std::min(instance.version(), first.properties.apiVersion);
    if (device.version < VK_API_VERSION_1_1 || !findQueue(vk, device))
      continue;
    device.extensions = extensionsOf(vk, handle);
    device.features = std::make_shared<FeatureChain>();
    vk.GetPhysicalDeviceFeatures2(
        handle, device.features->link(device.version, device.extensions));
    VkBool32 &matrices = device.features->cooperativeMatrix.cooperativeMatrix;
    matrices = matrices && multipliesHalves(vk, handle);
    readProperties(vk, device);
    VkPhysicalDeviceMemoryProperties2 memory{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    vk.GetPhysicalDeviceMemoryProperties2(handle, &memory);
    device.memory = memory.memoryProperties;
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<PhysicalDevice> chooseDevice(const std::vector<PhysicalDevice> &devices,
                                    const std::string &wanted) {
  if (devices.empty())
    return Status(StatusCode::NotFound,
                  "expects a device with Vulkan 1.1 and compute shaders, but "
                  "the loader lists none; install a driver (Debian: "
                  "mesa-vulkan-drivers, which also runs on the CPU)");
  if (wanted.empty())
    return *std::min_element(
        devices.begin(), devices.end(),
        [](const auto &a, const auto &b) { return rank(a) < rank(b); });
  bool number = std::all_of(wanted.begin(), wanted.end(),
                            [](char c) { return c >= '0' && c <= '9'; });
  if (number) {
    size_t index = wanted.size() > 4 ? devices.size() : std::stoul(wanted);
    if (index < devices.size())
      return devices[index];
    return Status(StatusCode::NotFound,
                  concat("expects a device below ", devices.size(),
                         ", but got ", wanted, "; there are ",
                         listed(devices)));
  }
  std::vector<const PhysicalDevice *> found;
  for (const PhysicalDevice &device : devices)
    if (lower(device.name).find(lower(wanted)) != std::string::npos)
      found.push_back(&device);
  if (found.size() == 1)
    return *found.front();
  return Status(StatusCode::NotFound,
                concat("expects the name of one device, but '", wanted,
                       found.empty() ? "' fits none" : "' fits several",
                       "; there are ",
                       listed(devices)));
}

} // namespace sprig::vulkan
