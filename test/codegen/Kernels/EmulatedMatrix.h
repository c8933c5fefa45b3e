// Cooperative matrices for devices that have none.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_EMULATEDMATRIX_H
#define SPRIG_TEST_CODEGEN_KERNELS_EMULATEDMATRIX_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm::test {

/// Replaces the matrix operations of a kernel by loops: sums lie in shared
/// memory, 256 numbers a subgroup, and each lane computes every
/// `subgroupSize`th of them from the operands in shared memory. Sums must form
/// chains, as accumulators do.
void emulateMatrices(ModuleOp kernel, uint32_t invocations,
                     uint32_t subgroupSize);

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_EMULATEDMATRIX_H
