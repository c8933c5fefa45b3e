//===- Features.h - the optional Vulkan features that kernels can need
//--------===//
#pragma once

#include "runtime/Format/Package_generated.h"
#include "runtime/Vulkan/Functions.h"

#include <set>
#include <string>

namespace sprig::vulkan {

/// All feature structures that matter here, linked as far as a device knows
/// them. One object asks what is there, another says what to switch on.
struct FeatureChain {
  FeatureChain();
  FeatureChain(const FeatureChain &) = delete;

  /// Links the structures that a device of this Vulkan version and these
  /// extensions knows, and returns the head.
  VkPhysicalDeviceFeatures2 *link(uint32_t version,
                                  const std::set<std::string> &extensions);

  /// The switch of a package feature; null for subgroup operations, which are
  /// properties and need no switch.
  VkBool32 *field(format::Feature feature);

  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceShaderFloat16Int8Features float16Int8;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dotProduct;
  VkPhysicalDeviceVulkanMemoryModelFeatures memoryModel;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroupSize;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperativeMatrix;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable;
};

/// An extension that brings something up to the Vulkan version that made it
/// core (0: never).
struct FeatureExtension {
  const char *name;
  uint32_t core;
};

/// The extension behind a package feature; name is null where there is none.
FeatureExtension extensionOf(format::Feature feature);

/// Whether `extension` is there, by name or as part of `version`.
bool available(const FeatureExtension &extension, uint32_t version,
               const std::set<std::string> &extensions);

} // namespace sprig::vulkan
