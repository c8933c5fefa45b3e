// The Vulkan devices that models can run on.
#ifndef SPRIG_TOOLS_RUN_DEVICES_H
#define SPRIG_TOOLS_RUN_DEVICES_H

#include <string>

namespace sprig::tools {

/// Prints them, a line each or as JSON. Returns why that cannot be, or nothing.
std::string listDevices(bool asJson);

} // namespace sprig::tools

#endif // SPRIG_TOOLS_RUN_DEVICES_H
