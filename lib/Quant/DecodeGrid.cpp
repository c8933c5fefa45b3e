// Blocks of 256 whose codes index a grid: a table of vectors of 4 or 8 numbers
// (ggml's IQ1, IQ2 and IQ3 formats).
#include "lib/Quant/CodeTables.h"
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Format.h"
#include "lib/Quant/Half.h"

namespace sprig::quant {
namespace {

constexpr size_t kBlock = 256;
constexpr float kIQ1Delta =
    0.125f; ///< every number of a group is moved up or down by this

uint8_t at(const std::byte *bytes, size_t i) { return uint8_t(bytes[i]); }

/// Seven stored signs; the eighth makes the number of minuses even.
uint8_t evenSigns(uint32_t signs) {
  signs &= 127;
  return uint8_t(signs | (std::popcount(signs) & 1) << 7);
}

/// A sign is flipped in the bits: a branch would be taken at random.
template <size_t width>
void writeSigned(const std::array<int8_t, width> &vector, float scale,
                 uint32_t signs, float *dst) {
  for (size_t i = 0; i < width; ++i) {
    const float value = scale * float(vector[i]);
    const uint32_t sign = (signs >> i & 1) << 31;
    dst[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ sign);
  }
}

void writeShifted(const std::array<int8_t, 8> &vector, float scale, float delta,
                  float *dst) {
  for (size_t i = 0; i < 8; ++i)
    dst[i] = scale * (float(vector[i]) + delta);
}

} // namespace

void decodeIQ2_XXS(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ2_XXS();
  for (; blocks; --blocks, src += 66, dst += kBlock) {
    const float d = half(src);
    for (size_t group = 0; group < 8; ++group) {
      const std::byte *codes = src + 2 + 8 * group;
      const uint32_t packed =
          load<uint32_t>(codes + 4); // four times 7 signs, then the scale
      const float scale = d * (0.5f + float(packed >> 28)) * 0.25f;
      for (size_t i = 0; i < 4; ++i)
        writeSigned(grid[at(codes, i)], scale, evenSigns(packed >> (7 * i)),
                    dst + 32 * group + 8 * i);
    }
  }
}

void decodeIQ2_XS(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ2_XS();
  for (; blocks; --blocks, src += 74, dst += kBlock) {
    const float d = half(src);
    for (size_t i = 0; i < 32; ++i) {
      const uint16_t code =
          load<uint16_t>(src + 2 + 2 * i); // 9 bits of grid, 7 signs
      const float scale =
          d * (0.5f + float(at(src, 66 + i / 4) >> (i / 2 % 2 * 4) & 15)) *
          0.25f;
      writeSigned(grid[code & 511], scale, evenSigns(code >> 9), dst + 8 * i);
    }
  }
}

void decodeIQ2_S(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ2_S();
  for (; blocks; --blocks, src += 82, dst += kBlock) {
    const float d = half(src);
    for (size_t i = 0; i < 32; ++i) {
      const size_t code =
          at(src, 2 + i) | (at(src, 66 + i / 4) >> (i % 4 * 2) & 3) << 8;
      const float scale =
          d * (0.5f + float(at(src, 74 + i / 4) >> (i / 2 % 2 * 4) & 15)) *
          0.25f;
      writeSigned(grid[code], scale, at(src, 34 + i), dst + 8 * i);
    }
  }
}

void decodeIQ3_XXS(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ3_XXS();
  for (; blocks; --blocks, src += 98, dst += kBlock) {
    const float d = half(src);
    for (size_t group = 0; group < 8; ++group) {
      const uint32_t packed = load<uint32_t>(src + 66 + 4 * group);
      const float scale = d * (0.5f + float(packed >> 28)) * 0.5f;
      for (size_t i = 0; i < 8; ++i) {
        const uint32_t signs = evenSigns(packed >> (i / 2 * 7)) >> (i % 2 * 4);
        writeSigned(grid[at(src, 2 + 8 * group + i)], scale, signs,
                    dst + 32 * group + 4 * i);
      }
    }
  }
}

void decodeIQ3_S(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ3_S();
  for (; blocks; --blocks, src += 110, dst += kBlock) {
    const float d = half(src);
    for (size_t i = 0; i < 64; ++i) {
      const size_t code = at(src, 2 + i) | (at(src, 66 + i / 8) >> (i % 8) & 1)
                                               << 8;
      const float scale =
          d * float(1 + 2 * (at(src, 106 + i / 16) >> (i / 8 % 2 * 4) & 15));
      writeSigned(grid[code], scale, at(src, 74 + i / 2) >> (i % 2 * 4),
                  dst + 4 * i);
    }
  }
}

void decodeIQ1_S(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ1();
  for (; blocks; --blocks, src += 50, dst += kBlock) {
    const float d = half(src);
    for (size_t group = 0; group < 8; ++group) {
      const uint16_t high = load<uint16_t>(
          src + 34 +
          2 * group); // 4 x 3 bits of grid, 3 of scale, sign of delta
      const float scale = d * float(2 * (high >> 12 & 7) + 1);
      const float delta = high & 0x8000 ? -kIQ1Delta : kIQ1Delta;
      for (size_t i = 0; i < 4; ++i) {
        const size_t code = at(src, 2 + 4 * group + i) | (high >> (3 * i) & 7)
                                                             << 8;
        writeShifted(grid[code], scale, delta, dst + 32 * group + 8 * i);
      }
    }
  }
}

void decodeIQ1_M(const std::byte *src, float *dst, size_t blocks) {
  const auto &grid = gridIQ1();
  for (; blocks; --blocks, src += 56, dst += kBlock) {
    // Four words of 4 x 3 bits of scale; their top four bits together are the
    // f16 scale of the block.
    uint16_t words[4];
    std::memcpy(words, src + 48, sizeof(words));
    const float d =
        halfToFloat(uint16_t(words[0] >> 12 | (words[1] >> 12) << 4 |
                             (words[2] >> 12) << 8 | (words[3] >> 12) << 12));
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t high =
          at(src, 32 + i / 2) >> (i % 2 * 4); // 3 bits of grid, sign of delta
      const float scale =
          d * float(2 * (words[i / 8] >> (i / 2 % 4 * 3) & 7) + 1);
      const float delta = high & 8 ? -kIQ1Delta : kIQ1Delta;
      writeShifted(grid[at(src, i) | (high & 7) << 8], scale, delta,
                   dst + 8 * i);
    }
  }
}

} // namespace sprig::quant
