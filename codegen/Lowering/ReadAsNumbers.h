// Weights that no kernel reads in the form that they have.
#ifndef SPRIG_CODEGEN_LOWERING_READASNUMBERS_H
#define SPRIG_CODEGEN_LOWERING_READASNUMBERS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// Dequantises weights whose rows or groups are no whole units of 32 numbers, which checkpoints may have: kernels read
/// codes by whole units. f32 holds exactly what the codes mean, at four bytes a number; one warning says so.
void readOddRowsAsNumbers(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_READASNUMBERS_H
