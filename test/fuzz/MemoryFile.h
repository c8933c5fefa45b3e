// Bytes as a file with a name, since the readers map files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace sprig::fuzz {

/// One file in memory, used again and again.
class MemoryFile {
public:
  MemoryFile()
      : file(memfd_create("fuzz", MFD_CLOEXEC)),
        name("/proc/self/fd/" + std::to_string(file)) {}
  ~MemoryFile() { close(file); }
  MemoryFile(const MemoryFile &) = delete;

  /// The path of a file with these bytes; nothing may have it open.
  const std::string &with(const uint8_t *data, size_t size) {
    if (ftruncate(file, 0) != 0 ||
        pwrite(file, data, size, 0) != ssize_t(size))
      __builtin_trap();
    return name;
  }

private:
  int file;
  std::string name;
};

} // namespace sprig::fuzz
