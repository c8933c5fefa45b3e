//===- MappedFile.h - a file as read-only memory
//-----------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sprig {

/// A whole file mapped read only and private. The bytes stay valid as long as
/// the object lives and the file is not truncated by someone else.
class MappedFile {
public:
  static Result<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return count; }
  const std::string &path() const { return name; }

  /// Gives the pages of [offset, offset + length) back to the system; they are
  /// read from the file again when touched.
  void release(uint64_t offset, uint64_t length) const;

private:
  const uint8_t *bytes = nullptr;
  uint64_t count = 0;
  std::string name;
};

} // namespace sprig
