// GGUF files, versions 2 and 3 (format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
//
// Opening checks the whole structure: what opens can be read without further
// bounds checks. Nothing is copied; metadata and tensors point into the map.
#ifndef SPRIG_LIB_WEIGHTS_GGUFFILE_H
#define SPRIG_LIB_WEIGHTS_GGUFFILE_H

#include "lib/Weights/GGUFMetadata.h"
#include "lib/Weights/MappedFile.h"
#include "lib/Weights/WeightSource.h"

namespace mlir::llm {

/// Whether a file begins like a GGUF file, of either byte order.
bool looksLikeGGUF(std::span<const std::byte> bytes);

class GGUFFile final : public WeightSource {
public:
  /// The file, and with the first file of a split model all of them.
  static llvm::Expected<std::unique_ptr<GGUFFile>> open(llvm::StringRef path);
  /// The file alone.
  static llvm::Expected<std::unique_ptr<GGUFFile>> parse(MappedFile file);

  llvm::StringRef formatName() const override { return "gguf"; }
  uint64_t fileBytes() const override {
    uint64_t bytes = file.bytes().size();
    for (const auto &part : parts)
      bytes += part->fileBytes();
    return bytes;
  }
  void release(std::span<const std::byte> range) const override {
    file.release(range);
  }

  uint32_t version() const { return versionNumber; }
  uint64_t alignment() const { return dataAlignment; }
  const GGUFMetadata &metadata() const { return keyValues; }

private:
  friend class GGUFParser;
  explicit GGUFFile(MappedFile file)
      : WeightSource(file.path()), file(std::move(file)) {}

  /// Adds the tensors of the other files of a split model.
  llvm::Error addParts();

  MappedFile file;
  std::vector<std::unique_ptr<GGUFFile>> parts; ///< behind the first
  uint32_t versionNumber = 0;
  uint64_t dataAlignment = 32;
  GGUFMetadata keyValues;
};

/// How the name of part `part` (from 1) of `count` ends where gguf-split wrote a
/// model as several files: -00001-of-00003.gguf.
std::string splitSuffix(uint64_t part, uint64_t count);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_GGUFFILE_H
