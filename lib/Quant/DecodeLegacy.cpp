// Blocks of 32 with f16 scales (ggml's first formats), and the four-bit float
// blocks. In all of them byte i of the codes holds number i in its low half and
// number i + 16 in its high half.
#include "lib/Quant/CodeTables.h"
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Format.h"
#include "lib/Quant/Half.h"

namespace sprig::quant {
namespace {

constexpr size_t kBlock = 32, kHalfBlock = 16;

uint8_t at(const std::byte *bytes, size_t i) { return uint8_t(bytes[i]); }

/// The 16 code bytes of a block looked up in a table of 16 values and
/// multiplied by one scale.
void lookUp(const std::byte *codes, const int8_t (&values)[16], float scale,
            float *dst, size_t halfBlock) {
  for (size_t i = 0; i < halfBlock; ++i) {
    dst[i] = scale * float(values[at(codes, i) & 15]);
    dst[i + halfBlock] = scale * float(values[at(codes, i) >> 4]);
  }
}

/// Half of 2^(x - 127): the codes count in halves. Exact for every x, the two
/// smallest by subnormals.
float halfOfE8M0(uint8_t x) {
  return std::bit_cast<float>(x < 2 ? 0x00200000u << x : uint32_t(x - 1) << 23);
}

/// Half of an unsigned E4M3 number. ggml reads 0x7f as zero and ignores the top
/// bit otherwise.
float halfOfUE4M3(uint8_t x) {
  if (x == 0 || x == 0x7f)
    return 0;
  const uint32_t exponent = (x >> 3) & 15, mantissa = x & 7;
  return exponent == 0
             ? float(mantissa) * 0x1p-10f
             : std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

} // namespace

void decodeQ4_0(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 18, dst += kBlock) {
    const float d = half(src);
    const std::byte *codes = src + 2;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      dst[i] = d * float((at(codes, i) & 15) - 8);
      dst[i + kHalfBlock] = d * float((at(codes, i) >> 4) - 8);
    }
  }
}

void decodeQ4_1(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 20, dst += kBlock) {
    const float d = half(src), m = half(src + 2);
    const std::byte *codes = src + 4;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      dst[i] = d * float(at(codes, i) & 15) + m;
      dst[i + kHalfBlock] = d * float(at(codes, i) >> 4) + m;
    }
  }
}

void decodeQ5_0(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 22, dst += kBlock) {
    const float d = half(src);
    const uint32_t high = load<uint32_t>(src + 2);
    const std::byte *codes = src + 6;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      const int low = (at(codes, i) & 15) | ((high >> i) & 1) << 4;
      const int upper = (at(codes, i) >> 4) | ((high >> (i + kHalfBlock)) & 1)
                                                  << 4;
      dst[i] = d * float(low - 16);
      dst[i + kHalfBlock] = d * float(upper - 16);
    }
  }
}

void decodeQ5_1(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 24, dst += kBlock) {
    const float d = half(src), m = half(src + 2);
    const uint32_t high = load<uint32_t>(src + 4);
    const std::byte *codes = src + 8;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      const int low = (at(codes, i) & 15) | ((high >> i) & 1) << 4;
      const int upper = (at(codes, i) >> 4) | ((high >> (i + kHalfBlock)) & 1)
                                                  << 4;
      dst[i] = d * float(low) + m;
      dst[i + kHalfBlock] = d * float(upper) + m;
    }
  }
}

void decodeQ8_0(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 34, dst += kBlock) {
    const float d = half(src);
    for (size_t i = 0; i < kBlock; ++i)
      dst[i] = float(int8_t(src[2 + i])) * d;
  }
}

void decodeIQ4_NL(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 18, dst += kBlock)
    lookUp(src + 2, kIQ4Values, half(src), dst, kHalfBlock);
}

void decodeMXFP4(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 17, dst += kBlock)
    lookUp(src + 1, kE2M1Doubled, halfOfE8M0(at(src, 0)), dst, kHalfBlock);
}

void decodeNVFP4(const std::byte *src, float *dst, size_t blocks) {
  for (; blocks; --blocks, src += 36)
    for (size_t part = 0; part < 4; ++part, dst += 16)
      lookUp(src + 4 + 8 * part, kE2M1Doubled, halfOfUE4M3(at(src, part)), dst,
             8);
}

} // namespace sprig::quant
