// SPIRV-Tools: the validator and the optimiser, as functions on words.
#ifndef SPRIG_CODEGEN_KERNELS_SPIRVTOOLS_H
#define SPRIG_CODEGEN_KERNELS_SPIRVTOOLS_H

#include "codegen/Target/TargetProfile.h"

namespace mlir::llm {

/// Empty, or what the validator has against the module under the rules of the
/// profile's Vulkan version.
std::string validateSpirv(const std::vector<uint32_t> &words,
                          const TargetProfile &profile);

/// Runs the passes that pay for kernels like ours; empty words and a message on
/// failure.
std::vector<uint32_t> optimiseSpirv(const std::vector<uint32_t> &words,
                                    const TargetProfile &profile,
                                    std::string &message);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SPIRVTOOLS_H
