#include "lib/Weights/WeightSource.h"
#include "lib/Weights/GGUFFile.h"
#include "lib/Weights/SafetensorsFile.h"
#include "lib/Weights/SafetensorsShards.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

namespace mlir::llm {

int64_t WeightTensor::elements() const { return rows() * columns(); }

int64_t WeightTensor::rows() const {
  int64_t product = 1;
  if (!shape.empty())
    for (int64_t size : llvm::drop_end(shape))
      product *= size;
  return product;
}

bool WeightSource::addTensor(WeightTensor tensor) {
  if (!indexOfKey.try_emplace(tensor.key, table.size()).second)
    return false;
  table.push_back(std::move(tensor));
  return true;
}

const WeightTensor *WeightSource::find(llvm::StringRef key) const {
  const auto at = indexOfKey.find(key);
  return at == indexOfKey.end() ? nullptr : &table[at->second];
}

llvm::Expected<const WeightTensor *>
WeightSource::get(llvm::StringRef key) const {
  if (const WeightTensor *tensor = find(key))
    return tensor;
  const WeightTensor *nearest = nullptr;
  unsigned best = unsigned(key.size()) / 3 + 1; // further is not a misspelling
  for (const WeightTensor &tensor : table) {
    const unsigned distance = key.edit_distance(tensor.key, true, best);
    if (distance < best) {
      best = distance;
      nearest = &tensor;
    }
  }
  return llvm::createStringError(
      path() + ": no tensor '" + key + "' among its " +
      llvm::Twine(table.size()) +
      (nearest ? "; did you mean '" + nearest->key + "'?" : llvm::Twine()));
}

uint64_t WeightSource::fingerprint() const {
  constexpr size_t kSample = 4096;
  llvm::SmallVector<uint64_t, 0> hashes;
  const auto add = [&](const void *data, size_t bytes) {
    hashes.push_back(llvm::xxh3_64bits(
        llvm::ArrayRef(static_cast<const uint8_t *>(data), bytes)));
  };
  for (const WeightTensor &tensor : table) {
    add(tensor.key.data(), tensor.key.size());
    add(tensor.shape.data(), tensor.shape.size() * sizeof(int64_t));
    hashes.push_back(uint64_t(tensor.format));
    add(tensor.data.data(), std::min(tensor.data.size(), kSample));
  }
  return llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(hashes.data()),
                     hashes.size() * sizeof(uint64_t)));
}

llvm::Expected<std::unique_ptr<WeightSource>>
openWeightSource(llvm::StringRef path) {
  if (path.ends_with(".index.json"))
    return SafetensorsShards::open(path);
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  if (looksLikeGGUF(file->bytes()))
    return GGUFFile::open(path);
  if (looksLikeSafetensors(file->bytes()))
    return SafetensorsFile::parse(std::move(*file));
  return llvm::createStringError(
      "'" + path +
      "' expects a GGUF or safetensors file, but begins like neither; was the "
      "download complete, or is it a Git LFS pointer?");
}

} // namespace mlir::llm
