//===- Ranges.h - small checks that cannot overflow
//---------------------------===//
#pragma once

#include "runtime/Format/Header.h"

#include <cstdint>

namespace sprig {

/// [offset, offset + bytes) lies in [0, total).
inline bool rangeInside(uint64_t offset, uint64_t bytes, uint64_t total) {
  return offset <= total && bytes <= total - offset;
}

inline bool aligned(uint64_t offset, uint64_t alignment = format::kAlignment) {
  return offset % alignment == 0;
}

} // namespace sprig
