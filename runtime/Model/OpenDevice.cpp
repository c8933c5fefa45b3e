#include "runtime/Model/OpenDevice.h"
#include "runtime/Vulkan/Requirements.h"

namespace sprig {

Result<OpenedDevice> openDevice(const Package &package,
                                const DeviceChoice &choice) {
  Result<std::shared_ptr<vulkan::Instance>> instance =
      vulkan::Instance::create({choice.validation, choice.listener});
  if (!instance.ok())
    return instance.status();
  auto devices = vulkan::listDevices(**instance);
  if (!devices.ok())
    return devices.status();
  Result<vulkan::PhysicalDevice> physical =
      vulkan::chooseDevice(*devices, choice.device);
  if (!physical.ok())
    return physical.status();
  Result<uint32_t> target =
      vulkan::chooseTarget(package.metadata(), *physical, choice.target);
  if (!target.ok())
    return target.status().within(package.path());

  vulkan::DeviceOptions options;
  options.robust = choice.robust;
  options.statistics = choice.statistics;
  options.intercept = choice.intercept;
  const format::Target &chosen = *package.metadata().targets()->Get(*target);
  if (const auto *features = chosen.requirements()->features())
    for (format::Feature feature : *features)
      options.features.push_back(feature);
  Result<std::shared_ptr<vulkan::Device>> device =
      vulkan::Device::create(*instance, *physical, options);
  if (!device.ok())
    return device.status();
  return OpenedDevice{*device, *target};
}

} // namespace sprig
