#include "tools/Run/Devices.h"

#include "runtime/sprig.h"
#include "tools/Support/Json.h"

#include <cstdio>
#include <vector>

namespace sprig::tools {

std::string listDevices(bool asJson) {
  size_t count = 0;
  if (sprig_list_devices(nullptr, 0, &count) != SPRIG_OK)
    return sprig_last_error();
  std::vector<sprig_device> devices(count);
  if (sprig_list_devices(devices.data(), count, &count) != SPRIG_OK)
    return sprig_last_error();
  if (count == 0)
    return "expects a Vulkan device, but the loader lists none; install a "
           "driver (Debian: mesa-vulkan-drivers)";
  Json json;
  json.open('{').key("devices").open('[');
  for (size_t i = 0; i < count; ++i) {
    const sprig_device &device = devices[i];
    std::string version = std::to_string(device.vulkan_major) + "." +
                          std::to_string(device.vulkan_minor);
    if (!asJson)
      std::printf("%zu: %s (%s, Vulkan %s, %.1f GiB; %s)\n", i, device.name,
                  device.kind, version.c_str(),
                  double(device.memory_bytes) / (1u << 30), device.driver);
    json.open('{').pair("index", uint64_t(i)).pair("name", device.name);
    json.pair("driver", device.driver).pair("kind", device.kind);
    json.pair("vulkan", version).pair("memory_bytes", device.memory_bytes);
    json.pair("unified", device.unified != 0).close();
  }
  json.close().close();
  if (asJson)
    std::puts(json.text().c_str());
  return {};
}

} // namespace sprig::tools
