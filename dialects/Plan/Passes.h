// Passes over the plan dialect; Passes.td is their manual.
#ifndef SPRIG_DIALECTS_PLAN_PASSES_H
#define SPRIG_DIALECTS_PLAN_PASSES_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::plan {

/// Category of the remarks that the passes emit.
inline constexpr llvm::StringLiteral kRemarkCategory = "plan";

#define GEN_PASS_DECL
#include "dialects/Plan/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Plan/Passes.h.inc"

} // namespace mlir::plan

#endif // SPRIG_DIALECTS_PLAN_PASSES_H
