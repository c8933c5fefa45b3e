// runtime/Support/MappedFile.h over a file in memory.
#include "MemoryFile.h"
#include "runtime/Support/MappedFile.h"

#include <utility>

namespace sprig {

using fuzz::MemoryFile;

Result<MappedFile> MappedFile::open(const std::string &path) {
  if (!MemoryFile::isNamed(path))
    return Status(StatusCode::NotFound, "cannot open " + path);
  const auto all = MemoryFile::contents();
  MappedFile mapped;
  mapped.name = path;
  mapped.count = all.size();
  mapped.bytes = reinterpret_cast<const uint8_t *>(all.data());
  return mapped;
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(count, other.count);
  std::swap(name, other.name);
  return *this;
}

MappedFile::~MappedFile() = default;

void MappedFile::release(uint64_t, uint64_t) const {}

} // namespace sprig
