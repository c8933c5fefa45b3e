//===- Result.h - VkResult → Status
//------------------------------------------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Vulkan/Functions.h"

#include <string_view>

namespace sprig::vulkan {

/// "VK_ERROR_DEVICE_LOST".
std::string resultName(VkResult result);

/// Success for VK_SUCCESS; otherwise a Status that names the call, the object
/// it was for, and the result: "vkAllocateMemory (weights, 90.2 MiB):
/// VK_ERROR_OUT_OF_DEVICE_MEMORY".
Status checked(VkResult result, std::string_view call,
               std::string_view object = {});

} // namespace sprig::vulkan
