//===- OutputFile.h - a file that is whole or absent ---------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace sprig {

/// Writes beside `path`; `commit` gives the file its name. Without it nothing
/// is left behind, and what was there before stays. A link is followed; what is
/// neither a file nor absent is refused.
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);

  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept { *this = std::move(other); }
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  Status write(const void *bytes, uint64_t count);
  /// Overwrites bytes that were written.
  Status rewrite(uint64_t offset, const void *bytes, uint64_t count);
  Status commit();

private:
  Status failed(const char *what) const;

  std::string target, aside;
  std::FILE *file = nullptr;
};

} // namespace sprig
