// The bytes of a plan.tensor: its region evaluated, laid out as the operation
// says (codegen/Lowering/WeightLayout.h).
#ifndef SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H
#define SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H

#include "codegen/Package/WeightSection.h"
#include "lib/Weights/WeightStore.h"

namespace mlir::llm {

/// Appends `tensor`, which has a place, to the section; a few MiB of it are in
/// memory at a time.
LogicalResult writeTensor(plan::TensorOp tensor, WeightStore &store,
                          SectionStream &section);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_TENSORWRITER_H
