#include "runtime/Vulkan/Features.h"

namespace sprig::vulkan {
namespace {

constexpr FeatureExtension k16Bit{VK_KHR_16BIT_STORAGE_EXTENSION_NAME,
                                  VK_API_VERSION_1_1};
constexpr FeatureExtension k8Bit{VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
                                 VK_API_VERSION_1_2};
constexpr FeatureExtension kFloat16Int8{
    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr FeatureExtension kDotProduct{
    VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, VK_API_VERSION_1_3};
constexpr FeatureExtension kMemoryModel{
    VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr FeatureExtension kSubgroupSize{
    VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3};
constexpr FeatureExtension kCooperativeMatrix{
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, 0};
constexpr FeatureExtension kExecutable{
    VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, 0};

template <class T> void start(T &structure, VkStructureType type) {
  structure = T{};
  structure.sType = type;
}

} // namespace

FeatureChain::FeatureChain() {
  start(core, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  start(storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  start(storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  start(float16Int8,
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  start(dotProduct,
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  start(memoryModel,
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  start(subgroupSize,
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  start(cooperativeMatrix,
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  start(
      executable,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
}

bool available(const FeatureExtension &extension, uint32_t version,
               const std::set<std::string> &extensions) {
  return (extension.core != 0 && version >= extension.core) ||
         extensions.count(extension.name) != 0;
}

VkPhysicalDeviceFeatures2 *
FeatureChain::link(uint32_t version, const std::set<std::string> &extensions) {
  core.pNext = nullptr;
  auto add = [&](auto &structure, const FeatureExtension &extension) {
    if (!available(extension, version, extensions))
      return;
    structure.pNext = core.pNext;
    core.pNext = &structure;
  };
  add(storage16, k16Bit);
  add(storage8, k8Bit);
  add(float16Int8, kFloat16Int8);
  add(dotProduct, kDotProduct);
  add(memoryModel, kMemoryModel);
  add(subgroupSize, kSubgroupSize);
  add(cooperativeMatrix, kCooperativeMatrix);
  add(executable, kExecutable);
  return &core;
}

VkBool32 *FeatureChain::field(format::Feature feature) {
  using format::Feature;
  switch (feature) {
  case Feature::shader_int8:
    return &float16Int8.shaderInt8;
  case Feature::shader_int16:
    return &core.features.shaderInt16;
  case Feature::shader_int64:
    return &core.features.shaderInt64;
  case Feature::shader_float16:
    return &float16Int8.shaderFloat16;
  case Feature::shader_float64:
    return &core.features.shaderFloat64;
  case Feature::storage_8bit:
    return &storage8.storageBuffer8BitAccess;
  case Feature::storage_16bit:
    return &storage16.storageBuffer16BitAccess;
  case Feature::uniform_8bit:
    return &storage8.uniformAndStorageBuffer8BitAccess;
  case Feature::uniform_16bit:
    return &storage16.uniformAndStorageBuffer16BitAccess;
  case Feature::integer_dot_product:
    return &dotProduct.shaderIntegerDotProduct;
  case Feature::cooperative_matrix:
    return &cooperativeMatrix.cooperativeMatrix;
  case Feature::vulkan_memory_model:
    return &memoryModel.vulkanMemoryModel;
  case Feature::subgroup_basic:
  case Feature::subgroup_vote:
  case Feature::subgroup_arithmetic:
  case Feature::subgroup_ballot:
  case Feature::subgroup_shuffle:
  case Feature::subgroup_shuffle_relative:
  case Feature::subgroup_clustered:
    return nullptr;
  }
  return nullptr;
}

FeatureExtension extensionOf(format::Feature feature) {
  using format::Feature;
  switch (feature) {
  case Feature::shader_int8:
  case Feature::shader_float16:
    return kFloat16Int8;
  case Feature::storage_8bit:
  case Feature::uniform_8bit:
    return k8Bit;
  case Feature::storage_16bit:
  case Feature::uniform_16bit:
    return k16Bit;
  case Feature::integer_dot_product:
    return kDotProduct;
  case Feature::cooperative_matrix:
    return kCooperativeMatrix;
  case Feature::vulkan_memory_model:
    return kMemoryModel;
  default:
    return {nullptr, 0};
  }
}

} // namespace sprig::vulkan
