//===- OpenDevice.h - from a package to an opened device and a target
//----------===//
#pragma once

#include "runtime/Package/Package.h"
#include "runtime/Vulkan/Device.h"

namespace sprig {

struct DeviceChoice {
  std::string device; ///< index or part of a name; empty: the most capable
  std::string target; ///< name of a target; empty: the best that fits
  bool validation = false;
  vulkan::Messages::Listener listener;
  bool robust = true;
  bool statistics = false;
  std::function<void(vulkan::DeviceFunctions &)> intercept;
};

struct OpenedDevice {
  std::shared_ptr<vulkan::Device> device;
  uint32_t target = 0; ///< index in the package
};

/// Starts Vulkan, chooses a device and the package's target for it, and opens
/// the device with just the features that the target requires.
Result<OpenedDevice> openDevice(const Package &package,
                                const DeviceChoice &choice);

} // namespace sprig
