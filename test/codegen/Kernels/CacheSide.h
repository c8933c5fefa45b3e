// One side of a layer's cache in the bytes of any format of KvFormat.h, for
// tests.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_CACHESIDE_H
#define SPRIG_TEST_CODEGEN_KERNELS_CACHESIDE_H

#include "StepState.h"
#include "codegen/Kernels/KvFormat.h"
#include <algorithm>
#include <cmath>

namespace mlir::llm::test {

struct CacheSide {
  KvFormat format;
  size_t slots, heads, headSize;
  std::vector<uint32_t> words;

  CacheSide(StringRef kv, size_t slots, size_t heads, size_t headSize,
            uint32_t fill = 0)
      : format(KvFormat::named(kv)), slots(slots), heads(heads),
        headSize(headSize), words(format.sideBytes(int64_t(slots),
                                                   int64_t(heads),
                                                   int64_t(headSize)) /
                                      4,
                                  fill) {}

  size_t group() const {
    return format.quantised() ? headSize / format.groups(headSize) : headSize;
  }
  /// Place of the scale of number `i`.
  size_t scaleAt(size_t i) const {
    return slots * heads * headSize / format.elementsPerWord() + i / group();
  }
  float numberOf(uint32_t word) const {
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }

  /// Number `i` of [slots][heads][headSize].
  float operator[](size_t i) const {
    const unsigned per = format.elementsPerWord();
    const uint32_t word = words[i / per] >> i % per * format.bits;
    if (format.bits == 32)
      return numberOf(word);
    if (format.bits == 16)
      return halfToFloat(uint16_t(word));
    const uint32_t scale = words[scaleAt(i)];
    if (format.bits == 8)
      return float(int8_t(word)) * numberOf(scale);
    return std::fma(float(word & 15), halfToFloat(uint16_t(scale)),
                    halfToFloat(uint16_t(scale >> 16)));
  }

  /// Half of a step between codes near number `i`, and what rounding adds.
  float unit(size_t i) const {
    if (format.bits == 32)
      return 2e-6f;
    if (format.bits == 16)
      return 1.5e-3f;
    const uint32_t scale = words[scaleAt(i)];
    return format.bits == 8 ? numberOf(scale) * 0.5001f + 4e-6f
                            : halfToFloat(uint16_t(scale)) * 0.51f + 1e-3f;
  }

  /// Fills the first `numbers.size()` numbers: whole heads.
  void write(const std::vector<float> &numbers) {
    const unsigned per = format.elementsPerWord();
    if (!format.quantised()) {
      std::vector<uint32_t> plain = toWords(numbers, format.bits == 16);
      std::copy(plain.begin(), plain.end(), words.begin());
      return;
    }
    for (size_t begin = 0; begin < numbers.size(); begin += group()) {
      const auto from = numbers.begin() + long(begin);
      const auto [low, high] = std::minmax_element(from, from + long(group()));
      float scale = std::max(-*low, *high) / 127, least = 0;
      uint32_t word;
      std::memcpy(&word, &scale, 4);
      if (format.bits == 4) {
        word = floatToHalf((*high - *low) / 15) |
               uint32_t(floatToHalf(*low)) << 16;
        scale = halfToFloat(uint16_t(word)), least = halfToFloat(word >> 16);
      }
      words[scaleAt(begin)] = word;
      for (size_t i = begin; i < begin + group(); ++i) {
        const float code = std::nearbyint((numbers[i] - least) / scale);
        const uint32_t bits =
            format.bits == 8 ? uint32_t(int32_t(code)) & 255
                             : uint32_t(std::clamp(code, 0.0f, 15.0f));
        const unsigned shift = i % per * format.bits;
        uint32_t &into = words[i / per];
        into = (into & ~(((1u << format.bits) - 1) << shift)) | bits << shift;
      }
    }
  }
};

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_CACHESIDE_H
