// Reads little-endian values from a span and never past its end.
#ifndef SPRIG_LIB_WEIGHTS_BYTEREADER_H
#define SPRIG_LIB_WEIGHTS_BYTEREADER_H

#include "llvm/ADT/StringRef.h"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mlir::llm {

class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes(bytes) {}

  size_t offset() const { return next; }
  size_t remaining() const { return bytes.size() - next; }

  template <typename T> [[nodiscard]] bool read(T &value) {
    if (remaining() < sizeof(T))
      return false;
    std::memcpy(&value, bytes.data() + next, sizeof(T));
    next += sizeof(T);
    return true;
  }

  [[nodiscard]] bool take(uint64_t count, std::span<const std::byte> &taken) {
    if (count > remaining())
      return false;
    taken = bytes.subspan(next, count);
    next += count;
    return true;
  }

private:
  std::span<const std::byte> bytes;
  size_t next = 0;
};

inline llvm::StringRef asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_BYTEREADER_H
