// attention: causal attention of the step's tokens over the cache, with grouped
// heads. The step's own keys and values are in the cache already (rope_append).
//
// Spec: {heads = H, kv_heads = G, head_size = E, capacity = S, kv = "f16" |
// "f32", scale = factor of q·k, softcap? = c of c·tanh(s/c), window? = cached
// positions that a token sees, itself included (0 = all), sinks? = first
// positions that the window never hides}. Bindings: q f32 [T][H·E]; control;
// keys, values of the layer's cache as 32-bit words [S][G][E/pairs]; y f32
// [T][H·E].
//
// Softmax is computed online (Milakov and Gimelshein, arXiv 1805.02867) over
// chunks of positions that start at multiples of the chunk's length, whatever
// the width of the step: so a token's numbers depend on its position alone.
// Positions that are not seen are replaced by zero before they are multiplied,
// so that stale or hostile cache contents, NaN included, never show.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTION_H
#define SPRIG_CODEGEN_KERNELS_ATTENTION_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct AttentionSpec {
  static constexpr llvm::StringLiteral kFamily = "attention";
  int64_t heads = 0, kvHeads = 0, headSize = 0, capacity = 0;
  std::string kv = "f16";
  double scale = 1, softcap = 0;
  int64_t window = 0, sinks = 0;

  static FailureOr<AttentionSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  /// Lanes lie along the head, exchanged by subgroup operations: one subgroup
  /// serves all query heads of a key head, and reads each key and value once.
  bool lanesAlongHead(const TargetProfile &profile) const;
};

/// Binding numbers.
struct AttentionSlots {
  static constexpr unsigned q = 0, control = 1, keys = 2, values = 3, y = 4;
};

/// What both schedules share: the visible range and the shape of a score.
class AttentionRange {
public:
  /// `token` is a row of the step.
  AttentionRange(KernelBuilder &builder, const AttentionSpec &spec, Value token,
                 int64_t chunk);

  Value first() const { return begin; } ///< a multiple of the chunk
  Value end() const { return limit; }   ///< one past the last visible position
  Value sees(Value position);
  /// scale and softcap; -1e30 where the position is hidden.
  Value score(Value product, Value visible);
  static constexpr float kHidden = -1e30f;

private:
  KernelBuilder &b;
  const AttentionSpec &spec;
  Value limit, begin;
};

// AttentionLanes.cpp, AttentionShared.cpp
void buildAttentionLanes(KernelBuilder &builder, const AttentionSpec &spec);
void buildAttentionShared(KernelBuilder &builder, const AttentionSpec &spec,
                          const KernelInterface &interface);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTION_H
