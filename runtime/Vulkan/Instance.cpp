#include "runtime/Vulkan/Instance.h"
#include "runtime/Support/Strings.h"
#include "runtime/Vulkan/Result.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace sprig::vulkan {
namespace {

constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";

bool hasExtension(const GlobalFunctions &vk, const char *layer,
                  const char *wanted) {
  uint32_t count = 0;
  vk.EnumerateInstanceExtensionProperties(layer, &count, nullptr);
  std::vector<VkExtensionProperties> found(count);
  vk.EnumerateInstanceExtensionProperties(layer, &count, found.data());
  found.resize(std::min<size_t>(count, found.size()));
  return std::any_of(found.begin(), found.end(), [&](const auto &extension) {
    return std::strcmp(extension.extensionName, wanted) == 0;
  });
}

bool hasLayer(const GlobalFunctions &vk, const char *wanted) {
  uint32_t count = 0;
  vk.EnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> found(count);
  vk.EnumerateInstanceLayerProperties(&count, found.data());
  found.resize(std::min<size_t>(count, found.size()));
  return std::any_of(found.begin(), found.end(), [&](const auto &layer) {
    return std::strcmp(layer.layerName, wanted) == 0;
  });
}

Status loadFunctions(const GlobalFunctions &global, VkInstance instance,
                     InstanceFunctions &vk) {
#define SPRIG_LOAD(name)                                                       \
  vk.name = reinterpret_cast<PFN_vk##name>(                                    \
      global.GetInstanceProcAddr(instance, "vk" #name));
  SPRIG_INSTANCE_FUNCTIONS(SPRIG_LOAD)
  SPRIG_OPTIONAL_INSTANCE_FUNCTIONS(SPRIG_LOAD)
#undef SPRIG_LOAD
#define SPRIG_CHECK(name)                                                      \
  if (!vk.name)                                                                \
    return {StatusCode::Unsupported,                                           \
            "expects the Vulkan loader to know vk" #name ", but it does not"};
  SPRIG_INSTANCE_FUNCTIONS(SPRIG_CHECK)
#undef SPRIG_CHECK
  return {};
}

} // namespace

Result<std::shared_ptr<Instance>>
Instance::create(const InstanceOptions &options) {
  Result<GlobalFunctions> global = loadVulkan();
  if (!global.ok())
    return global.status();

  uint32_t highest = VK_API_VERSION_1_0;
  global->EnumerateInstanceVersion(&highest);
  if (highest < VK_API_VERSION_1_1)
    return Status(StatusCode::Unsupported,
                  "expects Vulkan 1.1 or later, but the loader offers 1.0");

  std::shared_ptr<Instance> made(new Instance);
  made->received = std::make_unique<Messages>(options.listener);
  made->apiVersion = std::min<uint32_t>(highest, VK_API_VERSION_1_3);
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "sprig";
  application.pEngineName = "sprig";
  application.apiVersion = made->apiVersion;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  std::vector<const char *> extensions, layers;
  // Drivers on top of another API (MoltenVK) are listed only on request.
#ifdef VK_KHR_portability_enumeration
  if (hasExtension(*global, nullptr,
                   VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
#endif
  VkDebugUtilsMessengerCreateInfoEXT messages{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                             VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messages.pfnUserCallback = Messages::receive;
  messages.pUserData = made->received.get();
  VkValidationFeatureEnableEXT synchronisation =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = &synchronisation;
  if (options.validation) {
    if (!hasLayer(*global, kValidationLayer) ||
        !hasExtension(*global, kValidationLayer,
                      VK_EXT_DEBUG_UTILS_EXTENSION_NAME))
      return Status(StatusCode::NotFound,
                    concat("expects the layer ", kValidationLayer,
                           ", but it is not installed (Debian: "
                           "vulkan-validationlayers)"));
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    validation.pNext = &messages;
    info.pNext = &validation;
  }
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  info.enabledLayerCount = uint32_t(layers.size());
  info.ppEnabledLayerNames = layers.data();

  VkResult result = global->CreateInstance(&info, nullptr, &made->instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Status(StatusCode::NotFound,
                  "expects a Vulkan driver, but the loader found none (Debian: "
                  "mesa-vulkan-drivers)");
  if (Status status = checked(result, "vkCreateInstance"); !status.ok())
    return status;
  if (Status status = loadFunctions(*global, made->instance, made->vk);
      !status.ok())
    return status;
  if (options.validation) {
    result = made->vk.CreateDebugUtilsMessengerEXT(made->instance, &messages,
                                                   nullptr, &made->messenger);
    if (Status status = checked(result, "vkCreateDebugUtilsMessengerEXT");
        !status.ok())
      return status;
  }
  return made;
}

Instance::~Instance() {
  if (messenger)
    vk.DestroyDebugUtilsMessengerEXT(instance, messenger, nullptr);
  if (instance && vk.DestroyInstance)
    vk.DestroyInstance(instance, nullptr);
}

} // namespace sprig::vulkan
