// The noise of docs/sampling.md: a hash of (seed, position, token) and a
// Gumbel number made of it with a logarithm of our own.
#ifndef SPRIG_CODEGEN_KERNELS_SAMPLENOISE_H
#define SPRIG_CODEGEN_KERNELS_SAMPLENOISE_H

#include "codegen/Kernels/KernelBuilder.h"

namespace mlir::llm {

class SampleNoise {
public:
  /// All i32; `position` is that of the token to draw.
  SampleNoise(KernelBuilder &builder, Value seedLow, Value seedHigh,
              Value position);
  Value gumbel(Value token);
  /// In (0, 1); `gumbel` is made of it.
  Value uniform(Value token);

  /// ln x for normal x > 0, in multiplications and additions only.
  static Value log(KernelBuilder &builder, Value x);

private:
  Value mix(Value x);

  KernelBuilder &b;
  Value first, second;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SAMPLENOISE_H
