// A file mapped read-only into memory.
#ifndef SPRIG_LIB_WEIGHTS_MAPPEDFILE_H
#define SPRIG_LIB_WEIGHTS_MAPPEDFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mlir::llm {

class MappedFile {
public:
  /// Errors: the file cannot be opened, is not a regular file, or is empty.
  static llvm::Expected<MappedFile> open(llvm::StringRef path);
  /// The same of a part of a file, which may still grow behind it.
  static llvm::Expected<MappedFile> openRange(llvm::StringRef path,
                                              uint64_t first, size_t bytes);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  llvm::StringRef path() const { return name; }
  std::span<const std::byte> bytes() const { return {data, size}; }

  /// Lets the system drop pages that lie wholly in `range`, which has been read
  /// and is not needed soon: converting a large model must not fill the memory
  /// with its source. The bytes stay readable.
  void release(std::span<const std::byte> range) const;

private:
  explicit MappedFile(std::string name) : name(std::move(name)) {}
  llvm::Error map(int file, uint64_t first, size_t bytes);

  std::string name;
  const std::byte *data = nullptr;
  size_t size = 0;
  size_t before = 0; ///< mapped bytes before `data`: maps begin at pages
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_MAPPEDFILE_H
