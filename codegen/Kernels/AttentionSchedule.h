// How attention is computed on a target: the choices of the profile's family
// "attention".
//
//   numbers  tokens × query heads × head size that one workgroup serves at
//            most: more loads shared, more code and registers
//   deep_numbers  the same for wide steps over long contexts (kWide tokens,
//            kDeep positions), where it pays to compile more code; 0: numbers
//   code_numbers  the same over caches in integers that are multiplied as
//            floats, whose scales take registers, too; 0: numbers
//   group_numbers  query heads × head size that one workgroup serves at most,
//            unless they are multiplied as integers; 0: as many as elsewhere
//   groups   workgroups that keep the device busy without splitting the cache
//   word     bits of the integers that the cache is read in: 32 or 64
//   append   1: queries, keys and values are rotated and appended by the
//            product that makes them, where it can (LinearAppend.h)
//   touch    1: in steps of one token over long contexts (kDeep positions) a word
//            of every 64 bytes of the next chunk of positions is loaded while
//            one is computed: for processors, which fetch little ahead where a
//            head's positions lie a row of the cache apart
//   texels   1: the cache is read through texel views, four words at once,
//            where a lane's part of a head is so long; so are queries, and what
//            rope_append reads, number by number
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

struct AttentionSchedule {
  int64_t numbers = 512, groups = 128, word = 32, texels = 0,
          deepNumbers = 0, codeNumbers = 0, groupNumbers = 0, append = 0,
          touch = 0;
  static constexpr int64_t kWide = 32, kDeep = 4096;

  static FailureOr<AttentionSchedule> from(const TargetProfile &profile,
                                           EmitError emitError);
  /// The same where it was looked at before; a bad one is none.
  static FailureOr<AttentionSchedule> of(const TargetProfile &profile) {
    return from(profile, [] { return InFlightDiagnostic(); });
  }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONSCHEDULE_H
