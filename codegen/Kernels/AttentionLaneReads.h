// How the lanes of a subgroup that lie along a head read their parts of keys and
// values.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONLANEREADS_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONLANEREADS_H

#include "codegen/Kernels/AttentionBuild.h"

namespace mlir::llm {

/// The loads by which a lane reads its part of a head.
struct LaneLoads {
  int64_t words; ///< of 32 bits that each lane reads
  unsigned bits = 32, wide = 1;
  int64_t sharers = 1; ///< lanes that read one word

  LaneLoads(KernelBuilder &b, const AttentionSpec &spec);

  /// Words of one load.
  int64_t unit() const { return int64_t(wide) * bits / 32; }
  Type type(KernelBuilder &b) const;
};

/// An attention kernel whose chunks have a position for each lane of a subgroup.
class LaneReader : public AttentionBuilder {
protected:
  LaneReader(KernelBuilder &builder, const AttentionSpec &spec,
             int64_t numbers);

  /// The numbers or codes in words that were loaded.
  Values unpack(ValueRange words);
  /// This lane's part of the head in `slot`.
  Values load(unsigned binding, Value slot);
  KvScale scale(unsigned binding, Value slot);
  /// The words that it lies in; where lanes share one, moved to its lowest bits
  /// if `own` says so.
  Values words(unsigned binding, Value slot, bool own);
  /// The bits of a word that are left of this lane's.
  Value before();
  /// A word of every 64 bytes that the positions from `start` on have in keys and
  /// values, a position a lane: for their lines to be there when they are read.
  /// All of them are one value, for the driver to keep the loads.
  Value touch(Value start);

  LaneLoads loads;
  unsigned lanes;
  Value lane;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONLANEREADS_H
