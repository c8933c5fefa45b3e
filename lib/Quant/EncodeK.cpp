// Rounding to nearest for the K-quants that projects most often need to write.
// Scales come from the extremes of each group, then from the extremes among the
// groups; there is no search for a better scale.
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Half.h"

#include <algorithm>
#include <cmath>

namespace sprig::quant {
namespace {

constexpr size_t kBlock = 256;

float inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

/// 6-bit scale and minimum of each of eight groups of 32, and the codes, for
/// Q4_K and Q5_K.
struct RangeBlock {
  uint16_t d, dmin;
  uint8_t scales[8], minima[8], codes[kBlock];

  RangeBlock(const float *src, int most) {
    float steps[8], lows[8];
    for (size_t group = 0; group < 8; ++group) {
      const auto [low, high] =
          std::minmax_element(src + 32 * group, src + 32 * group + 32);
      lows[group] = std::max(0.0f, -*low); // a minimum can only be subtracted
      steps[group] = std::max(0.0f, *high + lows[group]) / float(most);
    }
    d = floatToHalf(*std::max_element(steps, steps + 8) / 63);
    dmin = floatToHalf(*std::max_element(lows, lows + 8) / 63);
    const float perScale = inverse(halfToFloat(d)),
                perMinimum = inverse(halfToFloat(dmin));
    for (size_t group = 0; group < 8; ++group) {
      scales[group] =
          uint8_t(clampToInt(std::round(steps[group] * perScale), 0, 63));
      minima[group] =
          uint8_t(clampToInt(std::round(lows[group] * perMinimum), 0, 63));
      const float scale = inverse(halfToFloat(d) * float(scales[group]));
      const float minimum = halfToFloat(dmin) * float(minima[group]);
      for (size_t i = 32 * group; i < 32 * group + 32; ++i)
        codes[i] = uint8_t(
            clampToInt(std::round((src[i] + minimum) * scale), 0, most));
    }
  }

  /// See unpackScalesAndMinima in DecodeK.cpp.
  void writeScales(std::byte *dst) const {
    store(dst, d);
    store(dst + 2, dmin);
    for (size_t i = 0; i < 4; ++i) {
      dst[4 + i] = std::byte(scales[i] | (scales[4 + i] >> 4) << 6);
      dst[8 + i] = std::byte(minima[i] | (minima[4 + i] >> 4) << 6);
      dst[12 + i] = std::byte((scales[4 + i] & 15) | (minima[4 + i] & 15) << 4);
    }
  }

  void writeNibbles(std::byte *dst) const {
    for (size_t pair = 0; pair < 4; ++pair)
      for (size_t i = 0; i < 32; ++i)
        dst[32 * pair + i] = std::byte((codes[64 * pair + i] & 15) |
                                       (codes[64 * pair + 32 + i] & 15) << 4);
  }
};

} // namespace

void encodeQ4_K(const float *src, std::byte *dst, size_t blocks) {
  for (; blocks; --blocks, src += kBlock, dst += 144) {
    const RangeBlock block(src, 15);
    block.writeScales(dst);
    block.writeNibbles(dst + 16);
  }
}

void encodeQ5_K(const float *src, std::byte *dst, size_t blocks) {
  for (; blocks; --blocks, src += kBlock, dst += 176) {
    const RangeBlock block(src, 31);
    block.writeScales(dst);
    block.writeNibbles(dst + 48);
    for (size_t i = 0; i < 32; ++i) {
      uint8_t high = 0;
      for (size_t group = 0; group < 8; ++group)
        high |= uint8_t((block.codes[32 * group + i] >> 4) << group);
      dst[16 + i] = std::byte(high);
    }
  }
}

void encodeQ6_K(const float *src, std::byte *dst, size_t blocks) {
  for (; blocks; --blocks, src += kBlock, dst += 210) {
    float steps[16];
    for (size_t group = 0; group < 16; ++group) {
      steps[group] = 0;
      for (size_t i = 16 * group; i < 16 * group + 16; ++i)
        steps[group] = std::max(steps[group], std::fabs(src[i]) / 31);
    }
    const uint16_t d = floatToHalf(*std::max_element(steps, steps + 16) / 127);
    const float perScale = inverse(halfToFloat(d));
    uint8_t codes[kBlock];
    for (size_t group = 0; group < 16; ++group) {
      const int subscale =
          clampToInt(std::round(steps[group] * perScale), 0, 127);
      dst[192 + group] = std::byte(subscale);
      const float scale = inverse(halfToFloat(d) * float(subscale));
      for (size_t i = 16 * group; i < 16 * group + 16; ++i)
        codes[i] =
            uint8_t(clampToInt(std::round(src[i] * scale), -32, 31) + 32);
    }
    store(dst + 208, d);
    // Number 128 h + 32 q + i: see decodeQ6_K.
    for (size_t h = 0; h < 2; ++h)
      for (size_t i = 0; i < 32; ++i) {
        const uint8_t *quarter = codes + 128 * h + i;
        dst[64 * h + i] =
            std::byte((quarter[0] & 15) | (quarter[64] & 15) << 4);
        dst[64 * h + 32 + i] =
            std::byte((quarter[32] & 15) | (quarter[96] & 15) << 4);
        dst[128 + 32 * h + i] =
            std::byte(quarter[0] >> 4 | (quarter[32] >> 4) << 2 |
                      (quarter[64] >> 4) << 4 | (quarter[96] >> 4) << 6);
      }
  }
}

} // namespace sprig::quant
