// The body of rope_append.
#ifndef SPRIG_CODEGEN_KERNELS_ROPEAPPENDBUILD_H
#define SPRIG_CODEGEN_KERNELS_ROPEAPPENDBUILD_H

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/RopeAppend.h"

namespace mlir::llm {

/// Positions of the bindings, which `fused` and `dims` shift.
struct RopeAppendSlots {
  unsigned q = 0, k, v, table, control, out, keys, values, scales;
  explicit RopeAppendSlots(const RopeAppendSpec &spec) {
    k = spec.fused || !spec.heads ? q : q + 1;
    v = spec.fused ? q : k + 1;
    table = v + 1;
    control = spec.dims ? table + 1 : table;
    out = control + 1;
    keys = spec.heads ? out + 1 : out;
    values = keys + 1;
    scales = values + 1;
  }
};

/// Lanes that work on one head: of whole words, one a lane where the cache is
/// not quantised; else a power of two, so that they can find scales.
int64_t ropeAppendLanes(const RopeAppendSpec &spec, int64_t workgroup);

/// The whole of the kernel.
void buildRopeAppend(KernelBuilder &builder, const RopeAppendSpec &spec,
                     const KernelInterface &interface);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ROPEAPPENDBUILD_H
