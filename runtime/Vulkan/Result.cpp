#include "runtime/Vulkan/Result.h"
#include "runtime/Support/Strings.h"

namespace sprig::vulkan {

std::string resultName(VkResult result) {
  switch (result) {
#define SPRIG_CASE(name)                                                       \
  case name:                                                                   \
    return #name;
    SPRIG_CASE(VK_SUCCESS)
    SPRIG_CASE(VK_NOT_READY)
    SPRIG_CASE(VK_TIMEOUT)
    SPRIG_CASE(VK_INCOMPLETE)
    SPRIG_CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
    SPRIG_CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    SPRIG_CASE(VK_ERROR_INITIALIZATION_FAILED)
    SPRIG_CASE(VK_ERROR_DEVICE_LOST)
    SPRIG_CASE(VK_ERROR_MEMORY_MAP_FAILED)
    SPRIG_CASE(VK_ERROR_LAYER_NOT_PRESENT)
    SPRIG_CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
    SPRIG_CASE(VK_ERROR_FEATURE_NOT_PRESENT)
    SPRIG_CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
    SPRIG_CASE(VK_ERROR_TOO_MANY_OBJECTS)
    SPRIG_CASE(VK_ERROR_FRAGMENTED_POOL)
    SPRIG_CASE(VK_ERROR_UNKNOWN)
    SPRIG_CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
    SPRIG_CASE(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    SPRIG_CASE(VK_ERROR_VALIDATION_FAILED_EXT)
    SPRIG_CASE(VK_ERROR_INVALID_SHADER_NV)
#undef SPRIG_CASE
  default:
    return concat("VkResult ", int(result));
  }
}

Status checked(VkResult result, std::string_view call,
               std::string_view object) {
  if (result == VK_SUCCESS)
    return {};
  StatusCode code = StatusCode::DeviceError;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY ||
      result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_OUT_OF_POOL_MEMORY)
    code = StatusCode::OutOfMemory;
  std::string text(call);
  if (!object.empty())
    text += concat(" (", object, ")");
  return {code, concat(text, ": ", resultName(result))};
}

} // namespace sprig::vulkan
