// How attention is computed on a target: the choices of the profile's family
// "attention".
//
//   numbers  tokens × query heads × head size that one workgroup serves at
//            most: more loads shared, more code and registers
//   groups   workgroups that keep the device busy without splitting the cache
//   word     bits of the integers that the cache is read in: 32 or 64
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

struct AttentionSchedule {
  int64_t numbers = 640, groups = 128, word = 32;

  static FailureOr<AttentionSchedule> from(const TargetProfile &profile,
                                           EmitError emitError);
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H
