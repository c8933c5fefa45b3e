// What a device must offer to run a target: exactly what its kernels and
// programs use, so that a package runs wherever it can.
#ifndef SPRIG_CODEGEN_PACKAGE_REQUIREMENTS_H
#define SPRIG_CODEGEN_PACKAGE_REQUIREMENTS_H

#include "codegen/Target/TargetProfile.h"
#include "dialects/Plan/Plan.h"
#include "runtime/Format/Package_generated.h"

namespace mlir::llm {

flatbuffers::Offset<sprig::format::Requirements>
buildRequirements(flatbuffers::FlatBufferBuilder &builder,
                  plan::TargetOp target, const TargetProfile &profile);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_REQUIREMENTS_H
