// kv_evict: makes room in a full cache. Of one side of the caches of some
// layers, the first Sinks slots stay, the next Dropped go, and those behind
// them, up to Base, move up by as many (Control.h). With `dims`, keys that were
// rotated are turned back by as many positions, so that a slot's number stays
// its position.
//
// Spec: that of CacheLayers, and {dims? = rotated numbers of a head,
// interleaved?, hadamard?: as in RopeAppend.h}. Bindings:
// control; cells: the side, scales included; with `dims` the rotation table of
// RopeAppend.h, of amplitude 1.
//
// A slot is written by the lanes that have read what was there before: those
// whose slots are `Dropped` apart are one workgroup's, in ascending order.
#ifndef SPRIG_CODEGEN_KERNELS_KVEVICT_H
#define SPRIG_CODEGEN_KERNELS_KVEVICT_H

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct KvEvictSpec : CacheLayers {
  static constexpr llvm::StringLiteral kFamily = "kv_evict";
  int64_t dims = 0, hadamard = 0; ///< dims 0: nothing is turned
  bool interleaved = false;

  static FailureOr<KvEvictSpec> fromAttr(DictionaryAttr spec,
                                         EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_KVEVICT_H
