// A file that appears under its name only when it is complete.
#ifndef SPRIG_LIB_WEIGHTS_OUTPUTFILE_H
#define SPRIG_LIB_WEIGHTS_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mlir::llm {

/// Writes to a file of another name in the same folder; commit() renames it
/// over `path`. Without commit() nothing is left behind.
class OutputFile {
public:
  /// A link is followed; what is neither a file nor absent (a folder, a device)
  /// is refused. A signal that ends the program removes the temporary file.
  static llvm::Expected<std::unique_ptr<OutputFile>>
  create(llvm::StringRef path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  llvm::StringRef path() const { return target; }
  /// Where the bytes are until commit(): to verify them before.
  llvm::StringRef temporaryPath() const { return temporary; }
  /// Bytes appended so far.
  uint64_t size() const { return end; }

  llvm::Error append(std::span<const std::byte> bytes);
  /// Appends zeros up to a multiple of `alignment`.
  llvm::Error alignTo(uint64_t alignment);
  /// Overwrites bytes; what lies past size() extends the file.
  llvm::Error writeAt(uint64_t offset, std::span<const std::byte> bytes);
  llvm::Error readAt(uint64_t offset, std::span<std::byte> bytes) const;
  /// Makes the bytes durable and gives the file its name.
  llvm::Error commit();

private:
  OutputFile(std::string target, std::string temporary, int file)
      : target(std::move(target)), temporary(std::move(temporary)), file(file) {
  }
  llvm::Error failed(const char *action) const;

  std::string target, temporary;
  int file;
  uint64_t end = 0;
};

/// Writes `text` to a file, or to the standard output where `path` is "-".
llvm::Error writeText(llvm::StringRef path, llvm::StringRef text);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_OUTPUTFILE_H
