// Activations in 8-bit integers: a row of K numbers is K / 4 words of signed
// codes, number k at byte k % 4, then a word for the f32 scale of each group,
// padded to whole vectors of four words.
//
// quantize: f32 rows to such rows, alone or behind the norm that makes them.
//
// Spec: {width = K, group? = numbers that share a scale (default K), bits? = of
// a code, 2 … 8 (default 8), rounded? : y is f32 [T][K], the numbers that codes
// stand for, norm? : rows of x are RMS-normalised first, eps? , count? = numbers that the
// mean is over (default K), gamma? : and multiplied by γ}.
// Bindings: x f32 [T][K]; gamma f32 [K]; y.
//
// A scale is the largest magnitude over the largest code; codes are rounded to
// the nearest.
#ifndef SPRIG_CODEGEN_KERNELS_INTEGERROWS_H
#define SPRIG_CODEGEN_KERNELS_INTEGERROWS_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

/// Where the parts of such a row lie, in words.
struct IntegerRow {
  int64_t width, group;

  int64_t codes() const { return width / 4; }
  int64_t groups() const { return width / group; }
  int64_t words() const { return codes() + (groups() + 3) / 4 * 4; }
};

/// The scale of numbers of magnitude `most` at the most, in codes of `bits`; its
/// inverse is 0 where the scale is. Equal in every kernel, so that a row has the
/// same bits wherever it is rounded.
struct IntegerScale {
  IntegerScale(KernelBuilder &b, Value most, int64_t bits);
  /// 128 above the code of a number, as an i32 from 0 to 255.
  Value code(KernelBuilder &b, Value x) const;
  Value scale, inverse;
};
/// What turns four such numbers in a word into codes, in two's complement.
inline constexpr uint32_t kCodeSigns = 0x80808080u;

struct QuantizeRowsSpec {
  static constexpr llvm::StringLiteral kFamily = "quantize";
  int64_t width = 0, group = 0, bits = 8;
  bool rounded = false, norm = false, gamma = false;
  double eps = 0;
  int64_t count = 0;

  static FailureOr<QuantizeRowsSpec> fromAttr(DictionaryAttr spec,
                                              EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  IntegerRow row() const { return {width, group ? group : width}; }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_INTEGERROWS_H
