// Writes a safetensors file tensor by tensor, in any number of pieces: neither
// the tensors nor their list have to fit in memory or be known beforehand.
#ifndef SPRIG_LIB_WEIGHTS_SAFETENSORSWRITER_H
#define SPRIG_LIB_WEIGHTS_SAFETENSORSWRITER_H

#include "lib/Quant/Format.h"
#include "lib/Weights/OutputFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::llm {

class SafetensorsWriter {
public:
  static llvm::Expected<std::unique_ptr<SafetensorsWriter>>
  create(llvm::StringRef path);

  /// Begins a tensor of a plain format; its bytes follow by write().
  llvm::Error begin(llvm::StringRef key, sprig::quant::Format format,
                    llvm::ArrayRef<int64_t> shape);
  llvm::Error write(std::span<const std::byte> bytes);
  /// Checks that the tensor has all of its bytes. Optional: the next begin()
  /// and finish() check it, too.
  llvm::Error end() const { return checkComplete(); }
  /// begin() and all of its bytes.
  llvm::Error add(llvm::StringRef key, sprig::quant::Format format,
                  llvm::ArrayRef<int64_t> shape,
                  std::span<const std::byte> bytes);

  size_t tensorCount() const { return entries.size(); }
  llvm::StringRef path() const { return file->path(); }
  /// Bytes of all tensors so far.
  uint64_t dataBytes() const;
  /// Where the last tensor lies in temporaryPath(), which is readable before
  /// finish(), and stays so for who has it open.
  std::pair<uint64_t, uint64_t> lastRange() const;
  llvm::StringRef temporaryPath() const { return file->temporaryPath(); }

  /// Writes the header, reads the file back to check it, and gives it its name.
  /// A writer that is dropped before leaves nothing behind.
  llvm::Error finish(const std::map<std::string, std::string> &metadata = {});

private:
  explicit SafetensorsWriter(std::unique_ptr<OutputFile> file)
      : file(std::move(file)) {}
  struct Entry {
    std::string key;
    sprig::quant::Format format;
    llvm::SmallVector<int64_t, 4> shape;
    uint64_t begin, end;
  };
  std::string header(const std::map<std::string, std::string> &metadata) const;
  llvm::Error growHeader(uint64_t begin);
  llvm::Error checkComplete() const;

  std::unique_ptr<OutputFile> file;
  std::vector<Entry> entries;
  llvm::StringSet<> keys;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_SAFETENSORSWRITER_H
