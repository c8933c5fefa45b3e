#include "runtime/Vulkan/Messages.h"
#include "runtime/Support/Strings.h"

namespace sprig::vulkan {
namespace {
constexpr size_t kKept = 16;
} // namespace

void Messages::add(const char *text) {
  std::lock_guard<std::mutex> lock(mutex);
  ++seen;
  if (kept.size() < kKept)
    kept.emplace_back(text);
  if (listener)
    listener(text);
}

size_t Messages::count() const {
  std::lock_guard<std::mutex> lock(mutex);
  return seen;
}

std::vector<std::string> Messages::all() const {
  std::lock_guard<std::mutex> lock(mutex);
  return kept;
}

Status Messages::check() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (kept.empty())
    return {};
  return {StatusCode::DeviceError,
          concat("expects no message of the validation layers, but got ", seen,
                 ", the first: ", kept.front())};
}

VkBool32 VKAPI_PTR Messages::receive(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity,
    VkDebugUtilsMessageTypeFlagsEXT types,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *self) {
  // General messages are the loader's own (drivers it skipped, say).
  bool ours = types & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT);
  if (ours && severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT)
    static_cast<Messages *>(self)->add(data->pMessage);
  return VK_FALSE;
}

} // namespace sprig::vulkan
