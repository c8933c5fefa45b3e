//===- Functions.h - Vulkan's functions, loaded at run time
//------------------===//
//
// The runtime links no Vulkan library. Three tables of function pointers,
// filled by Vulkan/Loader.cpp, Instance.cpp and Device.cpp, are all it calls. A
// test may replace entries of a device's table to make the call it likes fail.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Vulkan/Newer.h"

namespace sprig::vulkan {

#define SPRIG_GLOBAL_FUNCTIONS(DO)                                             \
  DO(CreateInstance)                                                           \
  DO(EnumerateInstanceExtensionProperties)                                     \
  DO(EnumerateInstanceLayerProperties)                                         \
  DO(EnumerateInstanceVersion)

#define SPRIG_INSTANCE_FUNCTIONS(DO)                                           \
  DO(CreateDevice)                                                             \
  DO(DestroyInstance)                                                          \
  DO(EnumerateDeviceExtensionProperties)                                       \
  DO(EnumeratePhysicalDevices)                                                 \
  DO(GetDeviceProcAddr)                                                        \
  DO(GetPhysicalDeviceFeatures2)                                               \
  DO(GetPhysicalDeviceMemoryProperties2)                                       \
  DO(GetPhysicalDeviceProperties2)                                             \
  DO(GetPhysicalDeviceQueueFamilyProperties)

/// Entries that stay null where the extension is not there.
#define SPRIG_OPTIONAL_INSTANCE_FUNCTIONS(DO)                                  \
  DO(CreateDebugUtilsMessengerEXT)                                             \
  DO(DestroyDebugUtilsMessengerEXT)                                            \
  DO(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define SPRIG_DEVICE_FUNCTIONS(DO)                                             \
  DO(AllocateCommandBuffers)                                                   \
  DO(AllocateDescriptorSets)                                                   \
  DO(AllocateMemory)                                                           \
  DO(BeginCommandBuffer)                                                       \
  DO(BindBufferMemory)                                                         \
  DO(CmdBindDescriptorSets)                                                    \
  DO(CmdBindPipeline)                                                          \
  DO(CmdCopyBuffer)                                                            \
  DO(CmdDispatch)                                                              \
  DO(CmdDispatchBase)                                                          \
  DO(CmdDispatchIndirect)                                                      \
  DO(CmdFillBuffer)                                                            \
  DO(CmdPipelineBarrier)                                                       \
  DO(CmdPushConstants)                                                         \
  DO(CmdResetQueryPool)                                                        \
  DO(CmdUpdateBuffer)                                                          \
  DO(CmdWriteTimestamp)                                                        \
  DO(CreateBuffer)                                                             \
  DO(CreateBufferView)                                                         \
  DO(CreateCommandPool)                                                        \
  DO(CreateComputePipelines)                                                   \
  DO(CreateDescriptorPool)                                                     \
  DO(CreateDescriptorSetLayout)                                                \
  DO(CreateFence)                                                              \
  DO(CreatePipelineCache)                                                      \
  DO(CreatePipelineLayout)                                                     \
  DO(CreateQueryPool)                                                          \
  DO(CreateShaderModule)                                                       \
  DO(DestroyBuffer)                                                            \
  DO(DestroyBufferView)                                                        \
  DO(DestroyCommandPool)                                                       \
  DO(DestroyDescriptorPool)                                                    \
  DO(DestroyDescriptorSetLayout)                                               \
  DO(DestroyDevice)                                                            \
  DO(DestroyFence)                                                             \
  DO(DestroyPipeline)                                                          \
  DO(DestroyPipelineCache)                                                     \
  DO(DestroyPipelineLayout)                                                    \
  DO(DestroyQueryPool)                                                         \
  DO(DestroyShaderModule)                                                      \
  DO(DeviceWaitIdle)                                                           \
  DO(EndCommandBuffer)                                                         \
  DO(FreeCommandBuffers)                                                       \
  DO(FreeMemory)                                                               \
  DO(GetBufferMemoryRequirements)                                              \
  DO(GetDeviceQueue)                                                           \
  DO(GetPipelineCacheData)                                                     \
  DO(GetQueryPoolResults)                                                      \
  DO(MapMemory)                                                                \
  DO(QueueSubmit)                                                              \
  DO(ResetFences)                                                              \
  DO(UpdateDescriptorSets)                                                     \
  DO(WaitForFences)

#define SPRIG_OPTIONAL_DEVICE_FUNCTIONS(DO)                                    \
  DO(GetMemoryHostPointerPropertiesEXT)                                        \
  DO(GetPipelineExecutablePropertiesKHR)                                       \
  DO(GetPipelineExecutableStatisticsKHR)

#define SPRIG_DECLARE_FUNCTION(name) PFN_vk##name name = nullptr;

struct GlobalFunctions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  SPRIG_GLOBAL_FUNCTIONS(SPRIG_DECLARE_FUNCTION)
};
struct InstanceFunctions {
  SPRIG_INSTANCE_FUNCTIONS(SPRIG_DECLARE_FUNCTION)
  SPRIG_OPTIONAL_INSTANCE_FUNCTIONS(SPRIG_DECLARE_FUNCTION)
};
struct DeviceFunctions {
  SPRIG_DEVICE_FUNCTIONS(SPRIG_DECLARE_FUNCTION)
  SPRIG_OPTIONAL_DEVICE_FUNCTIONS(SPRIG_DECLARE_FUNCTION)
};

} // namespace sprig::vulkan
