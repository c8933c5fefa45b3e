//===- Messages.h - what the validation layers had to say
//--------------------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Vulkan/Functions.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace sprig::vulkan {

/// Collects warnings and errors of the validation layers, from any thread.
/// `check` turns the first one into a Status, so that a program run under
/// validation fails where the mistake was made.
class Messages {
public:
  using Listener = std::function<void(const std::string &)>;
  explicit Messages(Listener listener) : listener(std::move(listener)) {}

  void add(const char *text);
  size_t count() const;
  std::vector<std::string> all() const;
  Status check() const;

  /// For VkDebugUtilsMessengerCreateInfoEXT; pUserData is a Messages.
  static VkBool32 VKAPI_PTR
  receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
          VkDebugUtilsMessageTypeFlagsEXT types,
          const VkDebugUtilsMessengerCallbackDataEXT *data, void *self);

private:
  mutable std::mutex mutex;
  Listener listener;
  size_t seen = 0;
  std::vector<std::string> kept; ///< the first few
};

} // namespace sprig::vulkan
