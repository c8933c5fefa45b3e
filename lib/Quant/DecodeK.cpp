// Blocks of 256 whose groups of 16 or 32 have integer scales under one f16
// scale (ggml's K-quants), ternary blocks and IQ4_XS. A number is (d *
// subscale) * code, less (dmin * submin) where the format has one, each step
// rounded to f32.
#include "lib/Quant/CodeTables.h"
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Format.h"
#include "lib/Quant/Half.h"

namespace sprig::quant {
namespace {

constexpr size_t kBlock = 256;

uint8_t at(const std::byte *bytes, size_t i) { return uint8_t(bytes[i]); }

/// The eight 6-bit scales and minima of Q4_K and Q5_K in 12 bytes: the first
/// four of each whole in bytes 0-3 and 4-7, the low halves of the last four in
/// bytes 8-11, their upper two bits in the top bits of bytes 0-7.
void unpackScalesAndMinima(const std::byte *packed, uint8_t (&scales)[8],
                           uint8_t (&minima)[8]) {
  for (size_t i = 0; i < 4; ++i) {
    const uint8_t scale = at(packed, i), minimum = at(packed, 4 + i),
                  low = at(packed, 8 + i);
    scales[i] = scale & 63;
    minima[i] = minimum & 63;
    scales[4 + i] = uint8_t((low & 15) | (scale >> 6) << 4);
    minima[4 + i] = uint8_t((low >> 4) | (minimum >> 6) << 4);
  }
}

} // namespace

void decodeQ2_K(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 84, dst += kBlock) {
    const std::byte *codes = src + 16;
    const float d = half(src + 80), dmin = half(src + 82);
    for (size_t group = 0; group < 16; ++group) {
      const float scale = d * float(at(src, group) & 15),
                  minimum = dmin * float(at(src, group) >> 4);
      // 128 numbers share 32 bytes: group pairs take bit pairs 0, 2, 4, 6 of
      // all of them.
      const std::byte *bytes = codes + group / 8 * 32 + group % 2 * 16;
      const int shift = int(group / 2 % 4 * 2);
      for (size_t i = 0; i < 16; ++i)
        dst[group * 16 + i] =
            scale * float((at(bytes, i) >> shift) & 3) - minimum;
    }
  }
}

void decodeQ3_K(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 110, dst += kBlock) {
    const std::byte *high = src, *codes = src + 32, *packed = src + 96;
    const float d = half(src + 108);
    for (size_t group = 0; group < 16; ++group) {
      const int low = (at(packed, group % 8) >> (group / 8 * 4)) & 15;
      const int top = (at(packed, 8 + group % 4) >> (group / 4 * 2)) & 3;
      const float scale = d * float((low | top << 4) - 32);
      const std::byte *bytes = codes + group / 8 * 32 + group % 2 * 16;
      const std::byte *bits = high + group % 2 * 16;
      const int shift = int(group / 2 % 4 * 2), bit = int(group / 2);
      // A clear high bit means "less four".
      for (size_t i = 0; i < 16; ++i)
        dst[group * 16 + i] = scale * float(((at(bytes, i) >> shift) & 3) -
                                            ((~at(bits, i) >> bit & 1) << 2));
    }
  }
}

void decodeQ4_K(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 144, dst += kBlock) {
    const float d = half(src), dmin = half(src + 2);
    uint8_t scales[8], minima[8];
    unpackScalesAndMinima(src + 4, scales, minima);
    for (size_t pair = 0; pair < 4; ++pair) {
      const std::byte *codes = src + 16 + 32 * pair;
      const float scale0 = d * float(scales[2 * pair]),
                  scale1 = d * float(scales[2 * pair + 1]);
      const float minimum0 = dmin * float(minima[2 * pair]),
                  minimum1 = dmin * float(minima[2 * pair + 1]);
      for (size_t i = 0; i < 32; ++i) {
        dst[64 * pair + i] = scale0 * float(at(codes, i) & 15) - minimum0;
        dst[64 * pair + 32 + i] = scale1 * float(at(codes, i) >> 4) - minimum1;
      }
    }
  }
}

void decodeQ5_K(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 176, dst += kBlock) {
    const float d = half(src), dmin = half(src + 2);
    uint8_t scales[8], minima[8];
    unpackScalesAndMinima(src + 4, scales, minima);
    const std::byte *high = src + 16;
    for (size_t group = 0; group < 8; ++group) {
      const std::byte *codes = src + 48 + group / 2 * 32;
      const float scale = d * float(scales[group]),
                  minimum = dmin * float(minima[group]);
      const int shift = int(group % 2 * 4), bit = int(group);
      for (size_t i = 0; i < 32; ++i)
        dst[32 * group + i] = scale * float((at(codes, i) >> shift & 15) |
                                            (at(high, i) >> bit & 1) << 4) -
                              minimum;
    }
  }
}

void decodeQ6_K(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 210, dst += kBlock) {
    const float d = half(src + 208);
    float scales[16];
    for (size_t i = 0; i < 16; ++i)
      scales[i] = d * float(int8_t(src[192 + i]));
    for (size_t part = 0; part < 8; ++part) {
      // 128 numbers share 64 low bytes and 32 high bytes: quarters take halves
      // of the former, bit pairs of the latter.
      const size_t quarter = part % 4;
      const std::byte *low = src + part / 4 * 64 + quarter % 2 * 32;
      const std::byte *high = src + 128 + part / 4 * 32;
      const int lowShift = int(quarter / 2 * 4), highShift = int(quarter * 2);
      for (size_t group = 0; group < 2; ++group)
        for (size_t i = 16 * group; i < 16 * group + 16; ++i)
          dst[32 * part + i] = scales[2 * part + group] *
                               float(((at(low, i) >> lowShift & 15) |
                                      (at(high, i) >> highShift & 3) << 4) -
                                     32);
    }
  }
}

void decodeTQ1_0(const std::byte *src, float *dst, size_t blocks) {
  // Five base-3 digits a byte, as the fraction byte / 256: multiplying by 3^n
  // (modulo 256) moves digit n to the top.
  constexpr uint8_t kPowers[5] = {1, 3, 9, 27, 81};
  const auto digit = [](uint8_t byte, uint8_t power) {
    return (uint8_t(byte * power) * 3 >> 8) - 1;
  };
  for (; blocks; --blocks, src += 54, dst += kBlock) {
    const float d = half(src + 52);
    const struct {
      size_t bytes, width, digits, first;
    } parts[] = {{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}};
    for (const auto &part : parts)
      for (size_t n = 0; n < part.digits; ++n)
        for (size_t i = 0; i < part.width; ++i)
          dst[part.first + n * part.width + i] =
              d * float(digit(at(src, part.bytes + i), kPowers[n]));
  }
}

void decodeTQ2_0(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 66, dst += kBlock) {
    const float d = half(src + 64);
    for (size_t group = 0; group < 8; ++group)
      for (size_t i = 0; i < 32; ++i)
        dst[32 * group + i] =
            d * float((at(src, group / 4 * 32 + i) >> (group % 4 * 2) & 3) - 1);
  }
}

void decodeIQ4_XS(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 136, dst += kBlock) {
    const float d = half(src);
    const uint16_t high = load<uint16_t>(src + 2);
    for (size_t group = 0; group < 8; ++group) {
      const int low = at(src, 4 + group / 2) >> (group % 2 * 4) & 15;
      const float scale =
          d * float((low | (high >> (2 * group) & 3) << 4) - 32);
      const std::byte *codes = src + 8 + 16 * group;
      for (size_t i = 0; i < 16; ++i) {
        dst[32 * group + i] = scale * float(kIQ4Values[at(codes, i) & 15]);
        dst[32 * group + 16 + i] = scale * float(kIQ4Values[at(codes, i) >> 4]);
      }
    }
  }
}

} // namespace sprig::quant
