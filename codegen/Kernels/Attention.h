// attention: causal attention of the step's tokens over the cache, with grouped
// heads. The step's own keys and values are in the cache already (rope_append).
//
// Spec: {heads = H, kv_heads = G, head_size = E, value_size? = EV where values
// are shorter than keys (whose width they have in the cache), capacity = S, kv =
// a name of KvFormat.h, scale = factor of q·k, softcap? = c of c·tanh(s/c), window? = cached
// positions that a token sees, itself included (0 = all), sinks? = first
// positions that the window never hides, split = positions of one split of the
// cache, tokens? = tokens that one workgroup serves, parts? = splits that a
// step may see: they are computed by workgroups of their own, tree? = width of
// a step whose rows are the nodes of a tree, bias? = scores fall with the distance
// (ALiBi, arXiv 2108.12409), hidden? = first positions that no token sees, block_size?, block_local?, block_first?,
// block_stride?: blocks of positions that a token sees (#llm.blocks); chunks in
// which it sees none are skipped, group? = query heads of a key head that one workgroup serves at most, integers? = products of 8-bit integers over a
// cache of i8, part? = slots of a part of the cache, where
// one binding does not span it (KvFormat.h)}. Bindings: q f32 [T][H·E]; control; keys, values of
// the layer's cache (KvFormat.h); y f32 [T][H·EV]; with `parts` also the partial
// results [T][H][parts][E] and their (maximum, sum of weights)
// [T][H][parts][2]; with `tree` its table (TreeTable.h); with `bias` a slope for
// each head, f32 [H]; with `part` the scales of a quantised cache.
//
// The cache is cut into splits that start at multiples of `split`, whatever the
// width of the step. Within a split, softmax is computed online (Milakov and
// Gimelshein, arXiv 1805.02867) over chunks of positions that start at
// multiples of the chunk's length; the splits' results are folded in ascending
// order (flash decoding), by the same workgroup, or with `parts` by
// attention_combine. So a token's numbers depend on its position alone. A token
// that sees one split only has its result at once, and nothing to combine.
//
// A node of a tree sees the positions up to its own, as any token does; those
// of the tree it reads from the slots of its path, position by position. So its
// bits are those of decoding its path.
//
// Positions that are not seen are read from a place that is seen, and weigh
// nothing, so that stale or hostile cache contents, NaN included, never show.
//
// With `integers` q is rounded to codes with a scale a head, and weights, times
// the scales of their values, to codes with a scale for 8 positions. Sums of
// products of codes are exact: 32-bit integers where lanes lie along the head
// and the target has integer dot products, else f32, which holds all integers up
// to 2^24. So they are equal in any order and by any instruction, and scales are
// applied to whole sums.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTION_H
#define SPRIG_CODEGEN_KERNELS_ATTENTION_H

#include "codegen/Kernels/BlockShape.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct AttentionSpec {
  static constexpr llvm::StringLiteral kFamily = "attention";
  int64_t heads = 0, kvHeads = 0, headSize = 0, capacity = 0;
  std::string kv = "f16";
  double scale = 1, softcap = 0;
  int64_t window = 0, sinks = 0;
  int64_t split = 0, tokens = 1, parts = 0, tree = 0;
  int64_t valueSize = 0; ///< 0: headSize
  int64_t hidden = 0;    ///< first positions that no token sees
  int64_t group = 0;     ///< query heads a workgroup at most; 0: up to eight
  bool bias = false;
  bool integers = false;
  BlockShape blocks;
  /// Of a cache of which a binding spans a part: slots of it, whole splits
  /// (KvFormat.h). Then there are `parts`, and workgroup z computes split z.
  CacheParts cache;

  static FailureOr<AttentionSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  /// Lanes lie along the head, exchanged by subgroup operations.
  bool lanesAlongHead(const TargetProfile &profile) const;
  int64_t valueNumbers() const { return valueSize ? valueSize : headSize; }
  /// The cache is read through texel views.
  bool readsTexels(const TargetProfile &profile) const;
  /// Words of the next chunk are loaded while one is computed.
  bool touches(const TargetProfile &profile) const;
  /// Query heads of one key head that one workgroup serves: they share its
  /// loads.
  int64_t groupHeads() const;

  /// The length of a split for a context of `capacity` slots: at most 64 of
  /// them.
  static int64_t splitFor(int64_t capacity);
  /// Splits that a step of `width` tokens may see.
  int64_t partsFor(int64_t width) const;
  /// Tokens that one workgroup serves in a step of `width` tokens.
  int64_t tokensFor(int64_t width, const TargetProfile &profile) const;
};

/// Binding numbers.
struct AttentionSlots {
  static constexpr unsigned q = 0, control = 1, keys = 2, values = 3, y = 4,
                            partial = 5, stats = 6;
  static unsigned tree(const AttentionSpec &spec) { return spec.parts ? 7 : 5; }
  static unsigned bias(const AttentionSpec &spec) {
    return tree(spec) + (spec.tree ? 1 : 0);
  }
  static unsigned scales(const AttentionSpec &spec) {
    return bias(spec) + (spec.bias ? 1 : 0);
  }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTION_H
