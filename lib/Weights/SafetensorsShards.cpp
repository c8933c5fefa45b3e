#include "lib/Weights/SafetensorsShards.h"
#include "lib/Weights/ByteReader.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

namespace mlir::llm {

uint64_t SafetensorsShards::fileBytes() const {
  uint64_t bytes = 0;
  for (const auto &shard : shards)
    bytes += shard->fileBytes();
  return bytes;
}

void SafetensorsShards::release(std::span<const std::byte> range) const {
  if (!shards.empty())
    shards.front()->release(range); // pages have addresses, not owners
}

llvm::Expected<std::vector<IndexedTensor>>
readShardIndex(llvm::StringRef indexPath) {
  const auto failed = [&](const llvm::Twine &message) {
    return llvm::createStringError(indexPath + ": " + message);
  };
  llvm::Expected<MappedFile> index = MappedFile::open(indexPath);
  if (!index)
    return index.takeError();
  const llvm::StringRef text = asText(index->bytes());
  const auto root =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded())
    return failed("is not valid JSON");
  const auto map = root.find("weight_map");
  if (map == root.end() || !map->is_object())
    return failed("expects an object 'weight_map'");

  std::vector<IndexedTensor> tensors;
  for (const auto &[key, value] : map->items()) {
    if (!value.is_string())
      return failed("weight_map '" + key + "' expects the name of a file");
    const llvm::StringRef name = value.get_ref<const std::string &>();
    // A name, not a path: an index must not reach outside its folder.
    if (name.empty() || name == "." || name == ".." || name.contains('/') ||
        name.contains('\\') || name.contains('\0'))
      return failed("weight_map '" + key +
                    "' expects a file beside the index, but got '" + name +
                    "'");
    tensors.push_back({key, name.str()});
  }
  return tensors;
}

llvm::Expected<std::unique_ptr<SafetensorsShards>>
SafetensorsShards::open(llvm::StringRef indexPath) {
  const auto failed = [&](const llvm::Twine &message) {
    return llvm::createStringError(indexPath + ": " + message);
  };
  auto tensors = readShardIndex(indexPath);
  if (!tensors)
    return tensors.takeError();
  std::unique_ptr<SafetensorsShards> result(new SafetensorsShards(indexPath));
  llvm::StringMap<size_t> shardOfName;
  for (const auto &[key, name] : *tensors) {
    const auto [at, isNew] =
        shardOfName.try_emplace(name, result->shards.size());
    if (isNew) {
      llvm::SmallString<256> path(llvm::sys::path::parent_path(indexPath));
      llvm::sys::path::append(path, name);
      auto shard = SafetensorsFile::open(path);
      if (!shard)
        return failed("a file of the checkpoint cannot be used: " +
                      llvm::toString(shard.takeError()));
      result->shards.push_back(std::move(*shard));
    }
    const WeightTensor *tensor = result->shards[at->second]->find(key);
    if (!tensor)
      return failed("expects tensor '" + key + "' in '" + name +
                    "', but that file does not have it");
    result->addTensor(*tensor);
  }
  for (const auto &shard : result->shards)
    for (const WeightTensor &tensor : shard->tensors())
      if (!result->find(tensor.key))
        return failed("does not list tensor '" + tensor.key + "' of '" +
                      llvm::sys::path::filename(shard->path()) + "'");
  return result;
}

} // namespace mlir::llm
