// The frame of an attention kernel: which queries a workgroup serves, its walk
// through the splits, and where results go. The two schedules derive from it
// and say how positions are scored and values summed.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONBUILD_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONBUILD_H

#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/AttentionRange.h"
#include "codegen/Kernels/KvFormat.h"

namespace mlir::llm {

class AttentionBuilder {
public:
  virtual ~AttentionBuilder() = default;

protected:
  /// `chunk`: positions of one round of the walk. `numbers`: of a head that
  /// each lane sums.
  AttentionBuilder(KernelBuilder &builder, const AttentionSpec &spec,
                   int64_t chunk, int64_t numbers);

  /// After `open` and the loads of the queries: all the rest.
  void finish();

  /// One round over [start, start + chunk): {maximum, sum of weights (this
  /// lane's share), numbers …} of every query.
  virtual Values round(Value start, ValueRange carried) = 0;
  /// Adds the lanes' shares of a sum.
  virtual Value total(Value share) = 0;
  /// Stores this lane's numbers of a head of `length` that starts at number
  /// `start`.
  virtual void write(unsigned binding, Value start,
                     ArrayRef<Value> numbers, int64_t length) = 0;

  /// Query `q` of this workgroup is head `q % heads` of its row `q / heads`.
  int64_t queries() const { return spec.tokens * heads; }
  Value limitOf(int64_t query) const { return limits[query / heads]; }
  Value row(int64_t query) const;
  Value head(int64_t query) const;
  /// First number of the query in an array [T][H][length].
  Value start(int64_t query, int64_t length) const;
  /// Scale, softcap and bias of what query `query` makes of the key at
  /// `position`; hidden positions get the lowest score.
  Value score(int64_t query, Value product, Value position, Value visible);
  /// The last position that any token of this workgroup sees.
  Value readable() const { return b.sub(limits.back(), b.index(1)); }
  /// The slot to read for `position`, or for one that is seen: its place among
  /// those that the binding spans.
  Value slotOf(Value position) {
    Value slot = range.slot(firstToken, b.min(position, readable()));
    return spec.cache ? b.sub(b.max(slot, partBegin), partBegin) : slot;
  }
  /// Word of the scale of group `group` in a side of the cache.
  Value scaleWord(unsigned side, Value slot, Value group) const {
    if (spec.cache) {
      Value head =
          b.add(b.mul(b.add(slot, partBegin), spec.kvHeads), keyHead);
      const int64_t before =
          side == AttentionSlots::keys
              ? 0
              : int64_t(format.scaleBytes(spec.capacity, spec.kvHeads,
                                          spec.headSize) /
                        4);
      return b.add(b.add(b.mul(head, format.groups(spec.headSize)), group),
                   before);
    }
    Value head = b.add(b.mul(slot, spec.kvHeads), keyHead);
    return b.add(format.scaleWord(b, head, spec.capacity, spec.kvHeads,
                                  spec.headSize),
                 group);
  }
  /// The binding that has the scales of a side.
  unsigned scalesOf(unsigned side) const {
    return spec.cache ? AttentionSlots::scales(spec) : side;
  }
  /// Values in the state of one query.
  int64_t carriedOf() const { return 2 + numbers; }

  KernelBuilder &b;
  const AttentionSpec &spec;
  KvFormat format;
  int64_t chunk, numbers, heads;
  AttentionRange range;
  Value keyHead;

private:
  Values walk(Value split);
  /// A round where a token sees anything of the chunk; else what was carried.
  Values roundIfSeen(Value at, ValueRange carried);
  /// The query's result, from the sums of all that it sees.
  void storeResult(int64_t query, ArrayRef<Value> state);
  void storeParts(const Values &state);
  /// The split that this workgroup computes, of those with results of their own,
  /// and its place among these.
  Value splitOf();
  Value placeOf(Value split);

  Value firstHead, firstToken, slot;
  Value partBegin; ///< first slot of the part of the cache
  Values slopes; ///< of each query
  Values limits; ///< of each token, ascending
};

// AttentionLanes.cpp, AttentionShared.cpp
void buildAttentionLanes(KernelBuilder &builder, const AttentionSpec &spec);
void buildAttentionShared(KernelBuilder &builder, const AttentionSpec &spec,
                          const KernelInterface &interface);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONBUILD_H
