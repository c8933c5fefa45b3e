// Where checkpoints that are quantised have their codes.
#ifndef SPRIG_LIB_WEIGHTS_PACKEDCODES_H
#define SPRIG_LIB_WEIGHTS_PACKEDCODES_H

#include "lib/Quant/Half.h"

#include <cstddef>
#include <cstdint>

namespace mlir::llm::weights {

/// AutoAWQ deals the eight codes of a word out in the order 0, 2, 4, 6, 1, 3,
/// 5, 7: where column n lies in its row of codes.
inline size_t awqPlace(size_t n) { return n / 8 * 8 + n % 2 * 4 + n % 8 / 2; }

/// Bits [from, from + count) of a little-endian stream of 32-bit words that lie
/// `stride` words apart.
inline uint32_t bitsAt(const std::byte *words, size_t stride, size_t from,
                       unsigned count) {
  const size_t word = from / 32, shift = from % 32;
  uint64_t value = sprig::quant::load<uint32_t>(words + 4 * word * stride);
  if (shift + count > 32)
    value |= uint64_t(sprig::quant::load<uint32_t>(words + 4 * (word + 1) * stride))
             << 32;
  return uint32_t(value >> shift) & ((1u << count) - 1);
}

} // namespace mlir::llm::weights

#endif // SPRIG_LIB_WEIGHTS_PACKEDCODES_H
