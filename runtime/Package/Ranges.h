//===- Ranges.h - small checks that cannot overflow
//---------------------------===//
#pragma once

#include "runtime/Format/Header.h"
#include "runtime/Format/Package_generated.h"

#include <cstdint>

namespace sprig {

/// [offset, offset + bytes) lies in [0, total).
inline bool rangeInside(uint64_t offset, uint64_t bytes, uint64_t total) {
  return offset <= total && bytes <= total - offset;
}

inline bool aligned(uint64_t offset, uint64_t alignment = format::kAlignment) {
  return offset % alignment == 0;
}

/// Whether a vector of structs lies where those may: the FlatBuffers verifier
/// looks at the place of its length alone.
template <class T>
bool alignedStructs(const flatbuffers::Vector<const T *> &vector) {
  return vector.size() == 0 ||
         reinterpret_cast<uintptr_t>(vector.Data()) % alignof(T) == 0;
}

} // namespace sprig
