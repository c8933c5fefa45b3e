#include "lib/Quant/Decoders.h"
#include "lib/Quant/Format.h"
#include "lib/Quant/Half.h"

#include <limits>

namespace sprig::quant {
namespace {

template <typename T>
void decodeNumbers(const std::byte *src, float *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = static_cast<float>(load<T>(src + i * sizeof(T)));
}

/// 8-bit types go through a table of their 256 values.
template <float (*convert)(uint8_t)>
void decodeBytes(const std::byte *src, float *dst, size_t count) {
  static const struct Values {
    float of[256];
    Values() {
      for (int i = 0; i < 256; ++i)
        of[i] = convert(uint8_t(i));
    }
  } values;
  for (size_t i = 0; i < count; ++i)
    dst[i] = values.of[uint8_t(src[i])];
}

} // namespace

float e4m3ToFloat(uint8_t value) {
  const uint32_t sign = uint32_t(value & 0x80) << 24;
  const uint32_t exponent = (value >> 3) & 15, mantissa = value & 7;
  if (exponent == 15 && mantissa == 7)
    return std::bit_cast<float>(sign | 0x7fc00000);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | mantissa << 20);
}

/// E5M2 is the upper byte of a binary16.
float e5m2ToFloat(uint8_t value) { return halfToFloat(uint16_t(value << 8)); }

float e8m0ToFloat(uint8_t value) {
  if (value == 0xff)
    return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(
      value == 0 ? 0x00400000u : uint32_t(value) << 23); // 2^-127 is subnormal
}

void decodeF32(const std::byte *src, float *dst, size_t count) {
  std::memcpy(dst, src, count * sizeof(float));
}

void decodeF16(const std::byte *src, float *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = half(src + 2 * i);
}

void decodeBF16(const std::byte *src, float *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = bfloatToFloat(load<uint16_t>(src + 2 * i));
}

void decodeF64(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<double>(src, dst, count);
}
void decodeI8(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<int8_t>(src, dst, count);
}
void decodeI16(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<int16_t>(src, dst, count);
}
void decodeI32(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<int32_t>(src, dst, count);
}
void decodeI64(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<int64_t>(src, dst, count);
}
void decodeU8(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<uint8_t>(src, dst, count);
}
void decodeU16(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<uint16_t>(src, dst, count);
}
void decodeU32(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<uint32_t>(src, dst, count);
}
void decodeU64(const std::byte *src, float *dst, size_t count) {
  decodeNumbers<uint64_t>(src, dst, count);
}
void decodeF8E4M3(const std::byte *src, float *dst, size_t count) {
  decodeBytes<e4m3ToFloat>(src, dst, count);
}
void decodeF8E5M2(const std::byte *src, float *dst, size_t count) {
  decodeBytes<e5m2ToFloat>(src, dst, count);
}
void decodeF8E8M0(const std::byte *src, float *dst, size_t count) {
  decodeBytes<e8m0ToFloat>(src, dst, count);
}

} // namespace sprig::quant
