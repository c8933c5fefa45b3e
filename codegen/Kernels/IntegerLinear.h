// integer_linear: y[T][N] = x[T][K] · w[N][K]ᵀ of integers, x in rows of
// IntegerRows.h and w in a format whose codes are integers.
//
// Spec: {format, n, k, x_group? = numbers of x that share a scale (a multiple
// of 32; default K), tokens? = rows of x that one group works on, gate? =
// "silu" | …: two weights, as in Linear.h, y_group? = with a gate, y is rounded
// to rows of IntegerRows.h of 8 bits with a scale for so many numbers, bias?,
// residual?}.
// Bindings: the planes of the weight, or of "gate" and "up", as in Linear.h;
// "x"; "bias" f32 [N]; "residual" f32 [T][N]; "y" f32 [T][N].
//
// Products of 32 neighbouring numbers (a unit), or of 16 where these share a
// scale, are added as 32-bit integers, which is exact in any order and by any
// instruction, f32 among them; then acc = fma(scale of w × scale of x, sum,
// acc), and where the format has minima acc = fma(minimum × scale of x, sum of
// the codes of x, acc). Spans or steps (BlockWalk) are dealt out to `split`
// slices in turn, which are added as a balanced tree. So the bits of y depend
// on the format, K, `split` and `spans` alone. The schedule is that of the
// family "linear".
#ifndef SPRIG_CODEGEN_KERNELS_INTEGERLINEAR_H
#define SPRIG_CODEGEN_KERNELS_INTEGERLINEAR_H

#include "codegen/Kernels/IntegerRows.h"
#include "codegen/Kernels/Linear.h"

namespace mlir::llm {

struct IntegerLinearSpec {
  static constexpr llvm::StringLiteral kFamily = "integer_linear";
  sprig::quant::Format format = sprig::quant::Format::F32;
  int64_t n = 0, k = 0, xGroup = 0, tokens = 1;
  std::string gate;
  int64_t yGroup = 0; ///< 0: y in f32
  bool bias = false, residual = false;

  static FailureOr<IntegerLinearSpec> fromAttr(DictionaryAttr spec,
                                               EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  /// The product of the same size of x in floats, whose schedule this one has.
  LinearSpec inFloats() const;
  FailureOr<LinearSchedule> schedule(const TargetProfile &profile,
                                     EmitError emitError) const;
  IntegerRow xRow() const { return {k, xGroup ? xGroup : k}; }
  IntegerRow yRow() const { return {n, yGroup ? yGroup : n}; }
  /// Whether codes are multiplied as f32, which is exact too: where the driver
  /// is a processor's, whose profile exchanges numbers of x. There integers
  /// would be unpacked in every lane, and multiplied at a fraction of the rate.
  bool multipliesFloats(const LinearSchedule &schedule,
                        const TargetProfile &profile) const;
  /// Whether y_group can be `group`: lanes of one subgroup hold a group of y.
  bool canRound(int64_t group, const TargetProfile &profile) const;
  /// Lanes that hold a group of y between them.
  static int64_t lanesOfGroup(const LinearSchedule &schedule, int64_t group) {
    return group / schedule.rows * schedule.split;
  }
  int64_t tiles() const { return (n + 7) / 8; }

  /// Whether there are kernels for x in groups of `group` numbers.
  static bool canMultiply(sprig::quant::Format format, int64_t group);
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_INTEGERLINEAR_H
