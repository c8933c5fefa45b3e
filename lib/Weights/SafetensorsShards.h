// A checkpoint that is split over several safetensors files, as its
// `model.safetensors.index.json` lists them.
#ifndef SPRIG_LIB_WEIGHTS_SAFETENSORSSHARDS_H
#define SPRIG_LIB_WEIGHTS_SAFETENSORSSHARDS_H

#include "lib/Weights/SafetensorsFile.h"

namespace mlir::llm {

/// A tensor, and the file beside the index that has it.
struct IndexedTensor {
  std::string key, file;
};
/// What an index lists. Errors: no such JSON, and a file outside its folder.
llvm::Expected<std::vector<IndexedTensor>>
readShardIndex(llvm::StringRef indexPath);

class SafetensorsShards final : public WeightSource {
public:
  /// Opens the index and every file it names. Errors: a missing file, a file
  /// outside the index's folder, a tensor that its file does not have, a file's
  /// tensor that the index does not list.
  static llvm::Expected<std::unique_ptr<SafetensorsShards>>
  open(llvm::StringRef indexPath);

  llvm::StringRef formatName() const override { return "safetensors"; }
  uint64_t fileBytes() const override;
  void release(std::span<const std::byte> range) const override;
  llvm::ArrayRef<std::unique_ptr<SafetensorsFile>> files() const {
    return shards;
  }

private:
  using WeightSource::WeightSource;
  std::vector<std::unique_ptr<SafetensorsFile>> shards;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_SAFETENSORSSHARDS_H
