//===- Loader.h - finds the Vulkan loader at run time
//------------------------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Vulkan/Functions.h"

namespace sprig::vulkan {

/// Opens libvulkan.so.1 (or what SPRIG_VULKAN_LIBRARY names) once a process and keeps it open: drivers start threads
/// that outlive an instance, so the library is never unloaded. Where there is
/// none, the error says which package brings it.
Result<GlobalFunctions> loadVulkan();

} // namespace sprig::vulkan
