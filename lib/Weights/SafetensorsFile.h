// Safetensors files (format:
// https://github.com/huggingface/safetensors#format): an 8-byte header length,
// a JSON header, and the data of the tensors without a gap.
//
// Opening checks the whole structure, as the reference reader does, and that no
// key occurs twice. Data is not copied.
#ifndef SPRIG_LIB_WEIGHTS_SAFETENSORSFILE_H
#define SPRIG_LIB_WEIGHTS_SAFETENSORSFILE_H

#include "lib/Weights/MappedFile.h"
#include "lib/Weights/WeightSource.h"
#include <map>
#include <string>

namespace mlir::llm {

/// The format's own limit on its header.
inline constexpr uint64_t kMostSafetensorsHeader = 100'000'000;

/// Whether a file begins like a safetensors file: a length, then '{'.
bool looksLikeSafetensors(std::span<const std::byte> bytes);

class SafetensorsFile final : public WeightSource {
public:
  static llvm::Expected<std::unique_ptr<SafetensorsFile>>
  open(llvm::StringRef path);
  static llvm::Expected<std::unique_ptr<SafetensorsFile>>
  parse(MappedFile file);

  llvm::StringRef formatName() const override { return "safetensors"; }
  uint64_t fileBytes() const override { return file.bytes().size(); }
  void release(std::span<const std::byte> range) const override {
    file.release(range);
  }
  /// The free-form strings under "__metadata__".
  const std::map<std::string, std::string> &metadata() const { return strings; }

private:
  explicit SafetensorsFile(MappedFile file)
      : WeightSource(file.path()), file(std::move(file)) {}
  llvm::Error read();

  MappedFile file;
  std::map<std::string, std::string> strings;
  /// Owns the keys, which are unescaped and so not in the file as such.
  std::vector<std::unique_ptr<std::string>> keys;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_SAFETENSORSFILE_H
