// Rounding to nearest for plain formats and blocks of 32, by the same
// arithmetic as the `gguf` package.
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Half.h"

#include <algorithm>
#include <cmath>

namespace sprig::quant {
namespace {

constexpr size_t kBlock = 32, kHalfBlock = 16;

float inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

/// The number of largest magnitude, with its sign; the first of equals.
float extreme(const float *src) {
  float best = src[0];
  for (size_t i = 1; i < kBlock; ++i)
    if (std::fabs(src[i]) > std::fabs(best))
      best = src[i];
  return best;
}

void packNibbles(const uint8_t (&codes)[kBlock], std::byte *dst) {
  for (size_t i = 0; i < kHalfBlock; ++i)
    dst[i] = std::byte((codes[i] & 15) | codes[i + kHalfBlock] << 4);
}

void packFifthBits(const uint8_t (&codes)[kBlock], std::byte *dst) {
  uint32_t high = 0;
  for (size_t i = 0; i < kBlock; ++i)
    high |= uint32_t(codes[i] >> 4 & 1) << i;
  store(dst, high);
}

/// Codes around zero: the extreme number becomes code 0, so the scale may be
/// negative.
float encodeSigned(const float *src, int zero, uint8_t (&codes)[kBlock]) {
  const float d = extreme(src) / float(-zero), scale = inverse(d);
  for (size_t i = 0; i < kBlock; ++i)
    codes[i] = uint8_t(
        clampToInt(src[i] * scale + (float(zero) + 0.5f), 0, 2 * zero - 1));
  return d;
}

/// Codes from the smallest to the largest number.
void encodeRange(const float *src, int most, uint8_t (&codes)[kBlock],
                 std::byte *scales) {
  const auto [low, high] = std::minmax_element(src, src + kBlock);
  const float minimum = *low, d = (*high - minimum) / float(most),
              scale = inverse(d);
  for (size_t i = 0; i < kBlock; ++i)
    codes[i] = uint8_t(clampToInt((src[i] - minimum) * scale + 0.5f, 0, most));
  store(scales, floatToHalf(d));
  store(scales + 2, floatToHalf(minimum));
}

} // namespace

void encodeF64(const float *src, std::byte *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    store(dst + 8 * i, double(src[i]));
}

void encodeF32(const float *src, std::byte *dst, size_t count) {
  std::memcpy(dst, src, count * sizeof(float));
}

void encodeF16(const float *src, std::byte *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    store(dst + 2 * i, floatToHalf(src[i]));
}

void encodeBF16(const float *src, std::byte *dst, size_t count) {
  for (size_t i = 0; i < count; ++i)
    store(dst + 2 * i, floatToBfloat(src[i]));
}

void encodeQ4_0(const float *src, std::byte *dst, size_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks; --blocks, src += kBlock, dst += 18) {
    store(dst, floatToHalf(encodeSigned(src, 8, codes)));
    packNibbles(codes, dst + 2);
  }
}

void encodeQ4_1(const float *src, std::byte *dst, size_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks; --blocks, src += kBlock, dst += 20) {
    encodeRange(src, 15, codes, dst);
    packNibbles(codes, dst + 4);
  }
}

void encodeQ5_0(const float *src, std::byte *dst, size_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks; --blocks, src += kBlock, dst += 22) {
    store(dst, floatToHalf(encodeSigned(src, 16, codes)));
    packFifthBits(codes, dst + 2);
    packNibbles(codes, dst + 6);
  }
}

void encodeQ5_1(const float *src, std::byte *dst, size_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks; --blocks, src += kBlock, dst += 24) {
    encodeRange(src, 31, codes, dst);
    packFifthBits(codes, dst + 4);
    packNibbles(codes, dst + 8);
  }
}

void encodeQ8_0(const float *src, std::byte *dst, size_t blocks) {
  for (; blocks; --blocks, src += kBlock, dst += 34) {
    const float d = std::fabs(extreme(src)) / 127, scale = inverse(d);
    store(dst, floatToHalf(d));
    for (size_t i = 0; i < kBlock; ++i)
      dst[2 + i] =
          std::byte(int8_t(clampToInt(std::round(src[i] * scale), -127, 127)));
  }
}

} // namespace sprig::quant
