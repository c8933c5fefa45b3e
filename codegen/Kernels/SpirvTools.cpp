#include "codegen/Kernels/SpirvTools.h"

#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>

namespace mlir::llm {
namespace {

spv_target_env environmentOf(const TargetProfile &profile) {
  if (profile.vulkan >= Version{1, 3})
    return SPV_ENV_VULKAN_1_3;
  if (profile.vulkan >= Version{1, 2})
    return SPV_ENV_VULKAN_1_2;
  return profile.spirv >= Version{1, 4} ? SPV_ENV_VULKAN_1_1_SPIRV_1_4
                                        : SPV_ENV_VULKAN_1_1;
}

/// Versions before 2023.2 do not know the capability CooperativeMatrixKHR, and
/// would refuse what they cannot read. MLIR has verified the module by then.
bool knowsMatrices() {
  static const bool knows = [] {
    spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_6);
    std::vector<uint32_t> words;
    return tools.Assemble("OpCapability CooperativeMatrixKHR", &words);
  }();
  return knows;
}

/// Whether the tools can read the module at all.
bool canRead(const std::vector<uint32_t> &words) {
  constexpr uint32_t kHeader = 5, kOpCapability = 17, kMatrixCapability = 6022;
  for (size_t at = kHeader; at + 1 < words.size() &&
                            (words[at] & 0xffff) == kOpCapability;
       at += 2)
    if (words[at + 1] == kMatrixCapability)
      return knowsMatrices();
  return true;
}

spvtools::MessageConsumer collect(std::string &message) {
  return [&message](spv_message_level_t level, const char *,
                    const spv_position_t &position, const char *text) {
    if (level <= SPV_MSG_ERROR && message.empty())
      message = "word " + std::to_string(position.index) + ": " + text;
  };
}

} // namespace

std::string validateSpirv(const std::vector<uint32_t> &words,
                          const TargetProfile &profile) {
  std::string message;
  if (!canRead(words))
    return message;
  spvtools::SpirvTools tools(environmentOf(profile));
  tools.SetMessageConsumer(collect(message));
  if (!tools.Validate(words) && message.empty())
    message = "invalid SPIR-V";
  return message;
}

std::vector<uint32_t> optimiseSpirv(const std::vector<uint32_t> &words,
                                    const TargetProfile &profile,
                                    std::string &message) {
  if (!canRead(words))
    return words;
  spvtools::Optimizer optimiser(environmentOf(profile));
  optimiser.SetMessageConsumer(collect(message));
  // The driver's own compiler does the heavy work. What it should not have to
  // see: function variables left by structured control flow, and the same
  // address computed many times.
  optimiser.RegisterPass(spvtools::CreateLocalSingleStoreElimPass())
      .RegisterPass(spvtools::CreateSSARewritePass())
      .RegisterPass(spvtools::CreateAggressiveDCEPass())
      .RegisterPass(spvtools::CreateLocalRedundancyEliminationPass())
      .RegisterPass(spvtools::CreateSimplificationPass())
      .RegisterPass(spvtools::CreateAggressiveDCEPass())
      .RegisterPass(spvtools::CreateCFGCleanupPass())
      .RegisterPass(spvtools::CreateBlockMergePass())
      .RegisterPass(spvtools::CreateUnifyConstantPass())
      .RegisterPass(spvtools::CreateEliminateDeadConstantPass())
      .RegisterPass(spvtools::CreateCompactIdsPass());
  std::vector<uint32_t> optimised;
  spvtools::OptimizerOptions options;
  options.set_run_validator(
      false); // done by the caller, once before and once after
  if (!optimiser.Run(words.data(), words.size(), &optimised, options)) {
    if (message.empty())
      message = "the optimiser failed";
    return {};
  }
  return optimised;
}

} // namespace mlir::llm
