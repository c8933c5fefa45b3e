// linear: y[T][N] = x[T][K] · w[N][K]ᵀ for quantised or plain weights, the
// family that decides speed.
//
// Spec: {format, n, k, tokens = rows of x that one group works on (1, 2, 4, 8,
// 16, …),
//        gate? = "silu" | "gelu" | "gelu_tanh": two weights, y = act(gate · x)
//        * (up · x), norm? : x is multiplied by γ[K] on load and y by a factor
//        before everything below: by factor[T] (rms_factor), or, where eps is
//        given, by 1 / sqrt(sum of x² / count + eps) of the row itself (count
//        defaults to K), bias? : f32 [N] is added,
//        residual? : f32 [T][N] is added last, outputs? = [n0, n1, …]: N is
//        split over several y buffers,  stride? = numbers between rows of y
//        (default N), append? = a spec of rope_append: y is the queries, keys
//        and values of all heads, which are rotated and appended here
//        (LinearAppend.h)}.
//
// Bindings, in this order: the planes of the weight in the layout tiled<rows=8>
// (lib/Quant/Layout.h), named "weight.<plane>", or "gate.<plane>" then
// "up.<plane>"; "x" f32 [T][K]; "gamma" f32 [K], and "factor" f32 [T] without
// eps; "bias"; "residual"; "y" or "y0", "y1", …, or with append "table",
// "control", "y" (the queries), "keys" and "values". x, factor, residual and y
// hold whole tiles of `tokens` rows.
//
// Accumulation contract. The order of operations behind one y[t][n] is fixed by
// the format, K and the schedule's `split`, `spans` and `chains`, and by
// nothing else: token tiles, row tiles and the way x reaches the lanes never
// change a bit.
//   - Spans of units whose scales are loaded at once (BlockWalk), or steps of
//   formats without, are dealt out to `split` slices in turn; a slice takes its
//   steps in order.
//   - Within a group of numbers with one scale, number k belongs to chain k mod
//   `chains`; a chain starts with a product
//     and goes on with fused multiply-adds in the order of k; chains are added
//     as a balanced tree.
//   - acc = fma(scale, sum, acc), then acc = fma(minimum, sum of x, acc); the
//   sum of x is a balanced tree over quads
//     of numbers, (x0 + x1) + (x2 + x3) within a quad.
//   - Slices are added as a balanced tree.
//   - The sum of x²: lane q of eight adds up quad q of every chunk of its
//   slice's steps, each as (x0² + x1²) + (x2² + x3²); lanes, then slices, are
//   added as a balanced tree.
//
// Matrices. With the choice `matrix`, products of token tiles of 16 and more go
// by cooperative matrices (SPV_KHR_cooperative_matrix): a subgroup dequantises
// its rows into shared memory as f16, the workgroup x (times γ and the RMS
// factor) beside them, and 16 × 16 × 16 products are summed in f32. Both
// roundings and the device's own order of additions stand outside the contract
// above, so only a profile without `bit_equal_widths` may choose it.
#ifndef SPRIG_CODEGEN_KERNELS_LINEAR_H
#define SPRIG_CODEGEN_KERNELS_LINEAR_H

#include "codegen/Kernels/RopeAppend.h"
#include "lib/Quant/Layout.h"

namespace mlir::llm {

class BlockCodec;
class KernelBuilder;

/// How a linear kernel is computed; what profiles may say under "schedules":
/// {"linear": […]}. The facts of a rule are `format`, `n`, `k`, `tokens`,
/// `gated`, `integers` (0 or 1; 1: IntegerLinear.h) and `among` (of sparse
/// weights, 4 or 8 numbers of which half are stored; else 0).
struct LinearSchedule {
  enum class X { Direct, Broadcast, Shuffle };
  /// How numbers of x reach the lanes: each loads its own; one load a subgroup,
  /// then broadcasts by constant lane or shuffles by a lane index that the
  /// driver cannot see through.
  X x = X::Direct;
  int64_t rows = 2;   ///< row tiles (of 8 rows) a lane works on at once
  int64_t waves = 1;  ///< sets of 8 * split invocations in a workgroup, each
                      ///< with its own row tiles
  int64_t split = 1;  ///< slices of K within such a set
  int64_t chains = 2; ///< independent sums within a group
  int64_t load =
      128; ///< most bits of weights that one load fetches: 32, 64 or 128
  int64_t texels = 0;   ///< 1: weights, 2: x and what else is of f32, 3: both
                        ///< are read through texel views (of 16 bytes, or 4
                        ///< for small planes and single numbers)
  int64_t matrix = 0;   ///< 1: by cooperative matrices of 16 tokens, 16 rows
                        ///< and 16 numbers of K, see "Matrices" above
  int64_t dots = 1; ///< products of integers by integer dot products, where the
                    ///< target has them: 1: of two tokens and more, 2: of all
  int64_t spans = 1; ///< 1: the scales of a span of units are loaded at once,
                     ///< before its loop (lib/Quant/Layout.h); 0: with each
  int64_t prescale = 0; ///< 1: codes keep their place in the word, x is divided
                        ///< by the power of two

  static FailureOr<LinearSchedule> from(const ScheduleValues &choices,
                                        const TargetProfile &profile,
                                        EmitError emitError);
  std::string key() const;
  /// All choices by name: what `from` reads back to an equal schedule.
  ScheduleValues values() const;
  /// Whether a choice changes the order of additions, and so the bits: it has
  /// to be one for all token tiles of a product.
  static bool changesBits(StringRef choice) {
    return choice == "split" || choice == "spans" || choice == "chains" ||
           choice == "matrix";
  }

  bool texelWeights() const { return texels & 1; }
  bool texelX() const { return texels & 2; }
  /// Bytes of a plane that one load fetches: 16, 8 or 4.
  unsigned elementBytes(const sprig::quant::PlaneLayout &plane) const;
  /// The view that a plane of weights is read through.
  TexelFormat texelOf(const sprig::quant::PlaneLayout &plane) const;
};

/// Tokens, rows and numbers of K of a cooperative matrix.
inline constexpr int64_t kMatrix = 16;

struct LinearSpec {
  static constexpr llvm::StringLiteral kFamily = "linear";
  sprig::quant::Format format = sprig::quant::Format::F32;
  int64_t n = 0, k = 0, tokens = 1;
  std::string gate;
  bool norm = false, bias = false, residual = false;
  double eps = 0;    ///< of the kernel's own RMS factor; 0: factor is bound
  int64_t count = 0; ///< numbers that the mean is over; 0: K
  /// x is of integers (IntegerLinear.h): a fact for the schedule, no member of
  /// the spec.
  bool integers = false;
  SmallVector<int64_t> outputs; ///< empty: one y of N rows
  int64_t stride = 0;           ///< 0: as many as the output has rows
  std::optional<RopeAppendSpec> append; ///< what becomes of y, if not itself

  static FailureOr<LinearSpec> fromAttr(DictionaryAttr spec,
                                        EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  FailureOr<LinearSchedule> schedule(const TargetProfile &profile,
                                     EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  /// Whether the profile's schedule for the product can end with `append`.
  bool canAppend(const RopeAppendSpec &append,
                 const TargetProfile &profile) const;

  std::string normKey() const;
  /// Bytes of shared memory that `schedule.matrix` takes.
  uint32_t matrixBytes(const LinearSchedule &schedule,
                       const TargetProfile &profile) const;
  /// Whether the kernel finds the RMS factor itself.
  bool ownFactor() const { return norm && eps != 0; }
  int64_t tiles() const { return (n + 7) / 8; }
  /// Row tiles that a workgroup covers under `schedule`, and the groups that
  /// all of them take.
  static int64_t tilesPerGroup(const LinearSchedule &schedule) {
    return schedule.rows * schedule.waves;
  }
  /// Sets of lanes that share row tiles, of all workgroups.
  int64_t setsOf(const LinearSchedule &schedule) const {
    const int64_t group = tilesPerGroup(schedule);
    return (tiles() + group - 1) / group * schedule.waves;
  }
  /// Row tile `r` of set `set`. A set's tiles lie far apart, and those of the
  /// next set next to them: each is a stream through memory of its own, which
  /// is what processors fetch ahead; of several in one page they lose track.
  /// `folded`: there may be more sets than setsOf().
  Value tileOf(KernelBuilder &b, const LinearSchedule &schedule, Value set,
               int64_t r, bool folded) const;
  /// Sets the workgroup and how many of them there are.
  void spread(const LinearSchedule &schedule, const TargetProfile &profile,
              KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LINEAR_H
