#include "codegen/Kernels/SampleNoise.h"

namespace mlir::llm {

SampleNoise::SampleNoise(KernelBuilder &builder, Value seedLow, Value seedHigh,
                         Value position)
    : b(builder) {
  Value turn = b.mul(b.constant(0x9e3779b9u), b.add(position, b.constant(1u)));
  first = mix(b.add(seedLow, turn));
  second =
      mix(b.bitXor(seedHigh, mix(b.bitXor(first, b.constant(0x85ebca6bu)))));
}

Value SampleNoise::mix(Value x) {
  x = b.bitXor(x, b.shr(x, 16));
  x = b.mul(x, b.constant(0x21f0aaadu));
  x = b.bitXor(x, b.shr(x, 15));
  x = b.mul(x, b.constant(0x735a2d97u));
  return b.bitXor(x, b.shr(x, 15));
}

Value SampleNoise::log(KernelBuilder &b, Value x) {
  static constexpr float kCoefficients[] = {
      -0.141596466f, 0.14834787f,  -0.165884882f, 0.199720502f,
      -0.250011474f, 0.333336711f, -0.49999997f};
  Value bits = b.bitsOfF32(x);
  Value exponent = b.sar(b.sub(bits, b.constant(0x3f3504f3u)), 23);
  Value f =
      b.sub(b.f32FromBits(b.sub(bits, b.shl(exponent, 23))), b.constant(1.0f));
  Value q = b.constant(0.0878726542f);
  for (float coefficient : kCoefficients)
    q = b.add(b.mul(q, f), b.constant(coefficient));
  Value tail = b.add(f, b.mul(b.mul(f, f), q));
  return b.add(b.mul(b.signedToF32(exponent), b.constant(0.693147182f)), tail);
}

Value SampleNoise::uniform(Value token) {
  Value bits = mix(b.bitXor(mix(b.add(token, first)), second));
  Value odd = b.add(b.shl(b.shr(bits, 9), 1), b.constant(1u));
  return b.mul(b.signedToF32(odd), b.constant(0x1p-24f));
}

Value SampleNoise::gumbel(Value token) {
  return b.neg(log(b, b.neg(log(b, uniform(token)))));
}

} // namespace mlir::llm
