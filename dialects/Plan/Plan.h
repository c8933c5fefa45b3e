// The plan dialect: the host program as IR. PlanOps.td is the manual of the
// operations.
#ifndef SPRIG_DIALECTS_PLAN_PLAN_H
#define SPRIG_DIALECTS_PLAN_PLAN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"

namespace mlir::plan {
class BufferOp;

/// Offsets of tensors, views and slices are multiples of this: the largest
/// minStorageBufferOffsetAlignment that Vulkan allows a device to have.
inline constexpr int64_t kAlignment = 256;
/// Weight buffers start and end at multiples of this in the weight section, so
/// that they can be mapped.
inline constexpr int64_t kPageBytes = 4096;

inline int64_t alignTo(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// The size in bytes of a value of type `!plan.view`.
int64_t getViewBytes(Value view);

/// Where a view's bytes are: in a buffer or tensor (`symbol`), or in a scratch
/// value that has no place yet (`scratch`).
struct Place {
  StringAttr symbol;   ///< null for scratch
  bool weight = false; ///< `symbol` names a `plan.tensor`
  Value scratch;
  int64_t offset = 0;
  int64_t bytes = 0;
};
Place getPlace(Value view);

/// The tensor that `weight` refers to, or null: tensors are symbols of the
/// module around the target.
Operation *lookupTensor(Operation *from, FlatSymbolRefAttr name);

} // namespace mlir::plan

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

#endif // SPRIG_DIALECTS_PLAN_PLAN_H
