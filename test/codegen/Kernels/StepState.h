// The device-side state that step kernels see, for tests.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_STEPSTATE_H
#define SPRIG_TEST_CODEGEN_KERNELS_STEPSTATE_H

#include "Harness.h"
#include "runtime/Format/Control.h"

namespace mlir::llm::test {

/// A control block of `count` tokens at slot `base`.
inline std::vector<uint32_t> control(uint32_t base, uint32_t count,
                                     uint32_t capacity) {
  std::vector<uint32_t> words(sprig::format::ControlWords);
  words[sprig::format::Base] = base;
  words[sprig::format::Count] = count;
  words[sprig::format::Capacity] = capacity;
  auto number = [](float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
  };
  words[sprig::format::TopP] = number(1);
  words[sprig::format::RepeatPenalty] = number(1);
  return words;
}

inline void set(std::vector<uint32_t> &words, sprig::format::ControlWord word,
                float value) {
  std::memcpy(&words[word], &value, 4);
}

inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31,
           mantissa = half & 1023;
  float value;
  if (exponent == 0) {
    value = float(mantissa) * 0x1p-24f;
  } else {
    uint32_t bits = exponent == 31 ? 0x7f800000 | mantissa << 13
                                   : (exponent + 112) << 23 | mantissa << 13;
    std::memcpy(&value, &bits, 4);
  }
  return sign ? -value : value;
}

/// Rounds to nearest even; for numbers in the range of f16 only.
inline uint16_t floatToHalf(float value) {
  uint16_t best = 0;
  uint16_t sign = value < 0 ? 0x8000 : 0;
  float size = value < 0 ? -value : value;
  // Find the nearest by bisection over the monotone encoding.
  uint16_t low = 0, high = 0x7bff;
  while (low < high) {
    uint16_t middle = uint16_t((low + high + 1) / 2);
    if (halfToFloat(middle) <= size)
      low = middle;
    else
      high = uint16_t(middle - 1);
  }
  best = low;
  if (low < 0x7bff) {
    float below = size - halfToFloat(low), above = halfToFloat(low + 1) - size;
    if (above < below || (above == below && low & 1))
      best = uint16_t(low + 1);
  }
  return uint16_t(best | sign);
}

/// Numbers of a cache in its words, both formats.
inline std::vector<uint32_t> toWords(const std::vector<float> &numbers,
                                     bool half) {
  std::vector<uint32_t> words;
  if (!half) {
    words.resize(numbers.size());
    std::memcpy(words.data(), numbers.data(), numbers.size() * 4);
    return words;
  }
  for (size_t i = 0; i + 1 < numbers.size(); i += 2)
    words.push_back(floatToHalf(numbers[i]) |
                    uint32_t(floatToHalf(numbers[i + 1])) << 16);
  return words;
}

inline std::vector<float> fromWords(const std::vector<uint32_t> &words,
                                    bool half) {
  std::vector<float> numbers;
  for (uint32_t word : words) {
    if (half) {
      numbers.push_back(halfToFloat(uint16_t(word)));
      numbers.push_back(halfToFloat(uint16_t(word >> 16)));
    } else {
      float value;
      std::memcpy(&value, &word, 4);
      numbers.push_back(value);
    }
  }
  return numbers;
}

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_STEPSTATE_H
