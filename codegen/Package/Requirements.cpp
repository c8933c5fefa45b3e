#include "codegen/Package/Requirements.h"

#include "codegen/Kernels/KernelInterface.h"

namespace mlir::llm {

using namespace sprig;

/// VK_MAKE_API_VERSION(0, major, minor, 0), without Vulkan's headers.
static uint32_t apiVersion(Version version) {
  return version.major << 22 | version.minor << 12;
}

flatbuffers::Offset<format::Requirements>
buildRequirements(flatbuffers::FlatBufferBuilder &builder,
                  plan::TargetOp target, const TargetProfile &profile) {
  std::vector<format::Feature> features;
  uint32_t subgroup = 0, invocations = 1, shared = 0, buffers = 1, push = 0;
  uint64_t storage = 1;
  uint32_t uniform = 0, texels = 0;
  for (plan::KernelOp kernel : target.getOps<plan::KernelOp>()) {
    if (ArrayAttr names = kernel.getFeaturesAttr())
      for (StringRef name : names.getAsValueRange<StringAttr>())
        for (format::Feature feature : format::EnumValuesFeature())
          if (name == format::EnumNameFeature(feature) &&
              !llvm::is_contained(features, feature))
            features.push_back(feature);
    ArrayRef<int32_t> size = *kernel.getWorkgroup();
    invocations =
        std::max<uint32_t>(invocations, uint32_t(size[0]) * size[1] * size[2]);
    shared = std::max<uint32_t>(shared, kernel.getSharedBytes());
    push = std::max<uint32_t>(push, kernel.getPushConstantBytes());
    buffers = std::max<uint32_t>(buffers, kernel.getAccess()->size());
    subgroup = std::max<uint32_t>(subgroup, kernel.getSubgroupSize());
  }
  SymbolTable symbols(target);
  target.walk([&](plan::DispatchOp dispatch) {
    auto kernel = symbols.lookup<plan::KernelOp>(dispatch.getKernel());
    for (auto [i, binding] : llvm::enumerate(dispatch.getBindings())) {
      uint64_t bytes = plan::getViewBytes(binding);
      std::optional<ArrayRef<int32_t>> formats = kernel.getTexelFormats();
      auto texel = TexelFormat(formats ? (*formats)[i] : 0);
      if (texel != TexelFormat::None)
        texels = std::max<uint32_t>(texels, bytes / texelBytes(texel));
      else if (kernel.getUniformBindings() >> i & 1)
        uniform = std::max<uint32_t>(uniform, bytes);
      else
        storage = std::max(storage, bytes);
    }
  });
  llvm::sort(features);
  auto list = builder.CreateVector(features);
  return format::CreateRequirements(
      builder, apiVersion(profile.vulkan), list, subgroup, invocations, shared,
      storage, buffers, /*offset_alignment=*/plan::kAlignment, push, uniform,
      texels);
}

} // namespace mlir::llm
