// From a kernel in gpu, scf, vector, arith, memref and math ops to a SPIR-V
// binary.
#ifndef SPRIG_CODEGEN_KERNELS_TOSPIRV_H
#define SPRIG_CODEGEN_KERNELS_TOSPIRV_H

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Target/TargetProfile.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// The attribute of an scf.for with a #spirv.loop_control for what becomes of
/// it.
inline constexpr llvm::StringLiteral kLoopControl = "sprig.loop_control";

/// Replaces the gpu.module in `module` by a spirv.module for `profile`. A
/// capability that the profile lacks is an error that names it and the kernel.
LogicalResult convertToSpirv(ModuleOp module, const TargetProfile &profile,
                             const KernelInterface &interface);

/// The words of the only spirv.module in `module`.
FailureOr<std::vector<uint32_t>> serialiseSpirv(ModuleOp module,
                                                StringRef kernel);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_TOSPIRV_H
