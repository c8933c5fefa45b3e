// Small floating-point types, converted in portable arithmetic that compilers
// vectorise. No result depends on a subnormal f32 operand, so flush-to-zero
// modes do not change them.
#ifndef SPRIG_LIB_QUANT_HALF_H
#define SPRIG_LIB_QUANT_HALF_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sprig::quant {

static_assert(std::endian::native == std::endian::little,
              "weight files are read in place, little endian");

/// An unaligned little-endian load.
template <typename T> inline T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T> inline void store(std::byte *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// IEEE binary16 to binary32, exact; NaN payloads are kept.
inline float halfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  const uint32_t rest = uint32_t(half & 0x7fff) << 13;
  const uint32_t normal = rest + 0x38000000; // rebias the exponent by 127 - 15
  const uint32_t special = rest | 0x7f800000;
  // A subnormal half m * 2^-24 is the fraction of a number with exponent -14,
  // less that number's leading one.
  const float fraction = std::bit_cast<float>(rest + 0x38800000) -
                         std::bit_cast<float>(0x38800000u);
  const uint32_t subnormal = std::bit_cast<uint32_t>(fraction);
  const uint32_t finite = rest < 0x00800000 ? subnormal : normal;
  return std::bit_cast<float>((rest >= 0x0f800000 ? special : finite) | sign);
}

/// binary32 to binary16, ties to even; too large becomes infinity, NaN stays a
/// (quiet) NaN.
inline uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return uint16_t(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >=
      0x477ff000) // 65,520: halfway between the largest half and the next power
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Below 2^-14: count in units of 2^-24. Adding 0.5 (unit in the last place
    // 2^-24) rounds to even in hardware.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return uint16_t(sign | ((rounded - 0x38000000) >> 13));
}

inline float bfloatToFloat(uint16_t value) {
  return std::bit_cast<float>(uint32_t(value) << 16);
}

/// binary32 to bfloat16, ties to even; NaN stays a (quiet) NaN.
inline uint16_t floatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float half(const std::byte *at) {
  return halfToFloat(load<uint16_t>(at));
}

/// The integer part of `value` within [low, high]; NaN gives `low`.
inline int clampToInt(float value, int low, int high) {
  if (!(value > float(low)))
    return low;
  return value >= float(high) ? high : int(value);
}

float e4m3ToFloat(uint8_t value);
float e5m2ToFloat(uint8_t value);
float e8m0ToFloat(uint8_t value);

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_HALF_H
