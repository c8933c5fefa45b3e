// Bytes as a file with a name, since the readers map files. Fuzzers are linked
// with mappings of their own (CompilerMemory.cpp, RuntimeMemory.cpp), which
// hand out these bytes without asking the system: an array of just their size,
// so that a read past the end is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace sprig::fuzz {

/// One file in memory, used again and again.
class MemoryFile {
public:
  /// The path of a file with these bytes; nothing may have it open.
  static const std::string &with(const uint8_t *data, size_t size) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(size);
    if (size != 0)
      std::memcpy(bytes.get(), data, size);
    count = size;
    return name;
  }

  /// The bytes under that path.
  static std::span<const std::byte> contents() { return {bytes.get(), count}; }
  static bool isNamed(std::string_view path) { return path == name; }

private:
  static inline const std::string name = "memory";
  static inline std::unique_ptr<std::byte[]> bytes;
  static inline size_t count = 0;
};

} // namespace sprig::fuzz
