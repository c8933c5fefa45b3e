// What a profile means to MLIR's SPIR-V conversion.
#ifndef SPRIG_CODEGEN_TARGET_TARGETENV_H
#define SPRIG_CODEGEN_TARGET_TARGETENV_H

#include "codegen/Target/TargetProfile.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"

namespace mlir::llm {

/// The capabilities, extensions, SPIR-V version and resource limits that
/// kernels of this target may use.
spirv::TargetEnvAttr getTargetEnv(const TargetProfile &profile,
                                  MLIRContext *context);

/// The profile feature that allows `capability`, or none where every Vulkan 1.1
/// device has it.
std::optional<Feature> featureFor(spirv::Capability capability);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_TARGET_TARGETENV_H
