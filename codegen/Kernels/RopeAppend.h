// rope_append: rotates queries and keys by their positions (RoPE, Su et al.,
// arXiv 2104.09864, eq. 34) and appends keys and values to the cache.
//
// Spec: {heads = H (0: keys and values alone, apart, without q and y), kv_heads = G, head_size = E, value_size? = numbers of a
// value where it is shorter than a key (its place in the cache is filled with
// zeros), capacity = S, kv = a name of KvFormat.h, dims? = rotated numbers of a
// head (default E; 0 rotates nothing), interleaved? = pairs are (2i, 2i+1)
// rather than (i, i + dims/2), fused? = q, k and v lie in one array, hadamard? =
// block of the Walsh-Hadamard transform that queries and keys go through last (a
// cache in integers), tree? = the step's rows are the nodes of a tree: they are
// rotated by their depth, long_from? = positions from there on turn by a second
// table, which lies behind the first, part? = slots of a part of the cache, where
// one binding does not span it}.
//
// Bindings: with `fused` qkv f32 [T][(H+2G)·E], else q [T][H·E], k [T][G·E], v
// [T][G·EV]; rotation table (absent where dims = 0); control; q out f32
// [T][H·E]; keys and values of the layer's cache; with `part` the scales of a
// quantised one.
//
// The rotation table holds (cos, sin) f32 pairs: rows 0 … 255 of dims/2 pairs
// for the angles of positions 0 … 255, then one row for each started block of
// 256 positions, of the block's first position. A position's rotation is the
// product of the two, so a long context needs few rows and no device has to
// take the sine of a large angle. See `ropeTable`.
#ifndef SPRIG_CODEGEN_KERNELS_ROPEAPPEND_H
#define SPRIG_CODEGEN_KERNELS_ROPEAPPEND_H

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct RopeAppendSpec {
  static constexpr llvm::StringLiteral kFamily = "rope_append";
  int64_t heads = 0, kvHeads = 0, headSize = 0, capacity = 0;
  int64_t dims = 0, hadamard = 0;
  int64_t valueSize = 0; ///< 0: headSize
  int64_t longFrom = 0;  ///< 0: one table for all positions
  std::string kv = "f16";
  bool interleaved = false;
  bool fused = false;
  bool tree = false;
  /// Of a cache of which a binding spans a part (KvFormat.h): workgroup z writes
  /// into part z, and the first writes the queries.
  CacheParts cache;

  static FailureOr<RopeAppendSpec> fromAttr(DictionaryAttr spec,
                                            EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
  /// What tells kernels apart.
  std::string shapeKey() const;

  static constexpr int64_t kTableRows = 256;
  static constexpr int64_t kMostHadamard = 256;
  /// Bytes of the rotation tables, and rows of one.
  uint64_t tableBytes() const;
  int64_t tableRows() const {
    return kTableRows + (capacity + kTableRows - 1) / kTableRows;
  }
  int64_t valueNumbers() const { return valueSize ? valueSize : headSize; }
};

/// The rotation table for angular frequencies `frequencies` (radians a
/// position, one per rotated pair) and positions below `capacity`; every number
/// is computed in double precision, multiplied by `amplitude` (long-RoPE's
/// attention factor) and rounded once.
std::vector<float> ropeTable(llvm::ArrayRef<double> frequencies,
                             int64_t capacity, double amplitude = 1);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ROPEAPPEND_H
