// Sampling noise: a pure function of (seed, absolute position, token id), so
// that plain and speculative decoding draw the same tokens. docs/sampling.md is
// the definition that every implementation follows; this is the CPU's.
//
// Only integer operations and single-rounded f32 multiplications and additions
// are used (no fused multiply-add, no library logarithm), so every device that
// rounds them as IEEE 754 says gets the same bits.
#ifndef SPRIG_LIB_REFERENCE_MATH_NOISE_H
#define SPRIG_LIB_REFERENCE_MATH_NOISE_H

#include <bit>
#include <cstdint>

namespace mlir::llm::reference {

/// A bijective mix of 32 bits (xor-shift and multiply, constants from Wellons'
/// hash prospector).
constexpr uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0x735a2d97u;
  x ^= x >> 15;
  return x;
}

/// The two words that all tokens of one position share.
struct NoiseKey {
  uint32_t first, second;

  constexpr NoiseKey(uint32_t seedLow, uint32_t seedHigh, uint32_t position)
      : first(mix(seedLow + 0x9e3779b9u * (position + 1))), second(mix(seedHigh ^ mix(first ^ 0x85ebca6bu))) {}

  constexpr uint32_t bits(uint32_t token) const { return mix(mix(token + first) ^ second); }
};

/// ln x of a positive, normal f32: polynomial on [sqrt(1/2), sqrt(2)), within
/// 4e-8 + 2^-24 |ln x|.
inline float noiseLog(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const int32_t exponent = int32_t(bits - 0x3f3504f3u) >> 23;
  const float f = std::bit_cast<float>(bits - (uint32_t(exponent) << 23)) - 1.0f;
  float p = 0.08787265419960022f;
  p = p * f + -0.1415964663028717f;
  p = p * f + 0.148347869515419f;
  p = p * f + -0.16588488221168518f;
  p = p * f + 0.19972050189971924f;
  p = p * f + -0.25001147389411926f;
  p = p * f + 0.3333367109298706f;
  p = p * f + -0.4999999701976776f;
  return float(exponent) * 0.6931471824645996f + (f + f * f * p);
}

/// -ln(-ln u), u the odd multiple of 2^-24 that the upper 23 bits choose; in
/// [-2.82, 16.64].
inline float gumbel(uint32_t bits) {
  const float u = float((bits >> 9) * 2 + 1) * 0x1p-24f;
  return -noiseLog(-noiseLog(u));
}

inline float gumbel(const NoiseKey &key, uint32_t token) { return gumbel(key.bits(token)); }

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_NOISE_H
