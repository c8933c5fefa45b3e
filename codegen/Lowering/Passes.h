// The passes of code generation; Passes.td is their manual.
#ifndef SPRIG_CODEGEN_LOWERING_PASSES_H
#define SPRIG_CODEGEN_LOWERING_PASSES_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {

/// Category of the remarks that the passes emit.
inline constexpr StringLiteral kLoweringRemarks = "codegen";

#define GEN_PASS_DECL
#include "codegen/Lowering/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "codegen/Lowering/Passes.h.inc"

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_PASSES_H
