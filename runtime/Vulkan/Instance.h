//===- Instance.h - the connection to the Vulkan loader
//-----------------------===//
#pragma once

#include "runtime/Vulkan/Loader.h"
#include "runtime/Vulkan/Messages.h"

#include <memory>

namespace sprig::vulkan {

struct InstanceOptions {
  /// Runs under VK_LAYER_KHRONOS_validation with synchronisation validation;
  /// an error where the layer is not installed.
  bool validation = false;
  Messages::Listener listener; ///< called for each message, from any thread
};

class Instance {
public:
  static Result<std::shared_ptr<Instance>>
  create(const InstanceOptions &options);
  ~Instance();
  Instance(const Instance &) = delete;

  VkInstance handle() const { return instance; }
  const InstanceFunctions &functions() const { return vk; }
  /// The Vulkan version asked for: no device is used beyond it.
  uint32_t version() const { return apiVersion; }
  const Messages &messages() const { return *received; }

private:
  Instance() = default;

  InstanceFunctions vk;
  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  std::unique_ptr<Messages> received;
  uint32_t apiVersion = 0;
};

} // namespace sprig::vulkan
