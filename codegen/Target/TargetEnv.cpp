#include "codegen/Target/TargetEnv.h"

#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"

namespace mlir::llm {
namespace {

using spirv::Capability;
using spirv::Extension;

/// One row a feature: what it allows and the extension that SPIR-V 1.3 wants
/// beside it.
struct FeatureRow {
  Feature feature;
  Capability capability;
  std::optional<Extension> extension = std::nullopt;
};

const FeatureRow kRows[] = {
    {Feature::ShaderInt8, Capability::Int8},
    {Feature::ShaderInt16, Capability::Int16},
    {Feature::ShaderInt64, Capability::Int64},
    {Feature::ShaderFloat16, Capability::Float16},
    {Feature::Storage8Bit, Capability::StorageBuffer8BitAccess,
     Extension::SPV_KHR_8bit_storage},
    {Feature::Storage16Bit, Capability::StorageBuffer16BitAccess,
     Extension::SPV_KHR_16bit_storage},
    {Feature::SubgroupBasic, Capability::GroupNonUniform},
    {Feature::SubgroupVote, Capability::GroupNonUniformVote},
    {Feature::SubgroupArithmetic, Capability::GroupNonUniformArithmetic},
    {Feature::SubgroupBallot, Capability::GroupNonUniformBallot},
    {Feature::SubgroupShuffle, Capability::GroupNonUniformShuffle},
    {Feature::SubgroupShuffleRelative,
     Capability::GroupNonUniformShuffleRelative},
    {Feature::SubgroupClustered, Capability::GroupNonUniformClustered},
    {Feature::Uniform8Bit, Capability::UniformAndStorageBuffer8BitAccess,
     Extension::SPV_KHR_8bit_storage},
    {Feature::Uniform16Bit, Capability::StorageUniform16,
     Extension::SPV_KHR_16bit_storage},
    {Feature::ShaderFloat64, Capability::Float64},
    {Feature::VulkanMemoryModel, Capability::VulkanMemoryModel},
    {Feature::IntegerDotProduct, Capability::DotProduct,
     Extension::SPV_KHR_integer_dot_product},
    {Feature::IntegerDotProduct, Capability::DotProductInput4x8BitPacked,
     Extension::SPV_KHR_integer_dot_product},
    {Feature::CooperativeMatrix, Capability::CooperativeMatrixKHR,
     Extension::SPV_KHR_cooperative_matrix},
};

spirv::Version toSpirv(Version version) {
  static constexpr spirv::Version kVersions[] = {
      spirv::Version::V_1_3, spirv::Version::V_1_4, spirv::Version::V_1_5,
      spirv::Version::V_1_6};
  return kVersions[version.minor -
                   3]; // validateProfile keeps it within 1.3 … 1.6
}

} // namespace

std::optional<Feature> featureFor(Capability capability) {
  for (const FeatureRow &row : kRows)
    if (row.capability == capability)
      return row.feature;
  return std::nullopt;
}

spirv::TargetEnvAttr getTargetEnv(const TargetProfile &profile,
                                  MLIRContext *context) {
  // Texel buffers are in every Vulkan; how large they may be is a limit.
  SmallVector<Capability> capabilities = {
      Capability::Shader, Capability::SampledBuffer, Capability::ImageBuffer};
  // MLIR asks for this extension wherever storage buffers are used, though
  // SPIR-V 1.3 has them in its core.
  SmallVector<Extension> extensions = {
      Extension::SPV_KHR_storage_buffer_storage_class};
  for (const FeatureRow &row : kRows) {
    if (!profile.has(row.feature))
      continue;
    capabilities.push_back(row.capability);
    if (row.extension && !llvm::is_contained(extensions, *row.extension))
      extensions.push_back(*row.extension);
  }
  Builder builder(context);
  const TargetLimits &limits = profile.limits;
  SmallVector<int32_t> size;
  for (uint32_t extent : limits.workgroupSize)
    size.push_back(int32_t(extent));
  auto resources = spirv::ResourceLimitsAttr::get(
      context, int(limits.sharedBytes), int(limits.workgroupInvocations),
      builder.getI32ArrayAttr(size),
      int(profile.subgroupSize ? profile.subgroupSize : 32), std::nullopt,
      std::nullopt, ArrayAttr{}, ArrayAttr{});
  auto triple = spirv::VerCapExtAttr::get(toSpirv(profile.spirv), capabilities,
                                          extensions, context);
  return spirv::TargetEnvAttr::get(
      triple, resources, spirv::ClientAPI::Vulkan, spirv::Vendor::Unknown,
      spirv::DeviceType::Unknown, spirv::TargetEnvAttr::kUnknownDeviceID);
}

} // namespace mlir::llm
