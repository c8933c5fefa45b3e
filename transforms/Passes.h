// Passes from llm to llm; Passes.td is their manual.
#ifndef SPRIG_TRANSFORMS_PASSES_H
#define SPRIG_TRANSFORMS_PASSES_H

#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {

#define GEN_PASS_DECL
#include "transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "transforms/Passes.h.inc"

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PASSES_H
