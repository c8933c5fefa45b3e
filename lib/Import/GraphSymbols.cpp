// What stands beside the function: the source, the tokenizer, the caches and
// the description of the model.
#include "lib/Import/GraphBuilder.h"

#include "lib/Import/CheckpointTokenizer.h"
#include "lib/Weights/GGUFFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;

/// The place that a path names, with links of its folders resolved: `..` behind
/// a link means another folder.
static SmallString<128> realPlace(StringRef path, bool isFolder) {
  SmallString<128> place(path), folder;
  (void)llvm::sys::fs::make_absolute(place);
  if (isFolder)
    return llvm::sys::fs::real_path(place, folder) ? place : folder;
  if (llvm::sys::fs::real_path(llvm::sys::path::parent_path(place), folder))
    return place;
  llvm::sys::path::append(folder, llvm::sys::path::filename(place));
  return folder;
}

/// `path` as a reader of an IR file in `folder` needs it: relative where both
/// lie in one part of the file system.
static std::string relativePath(StringRef path, StringRef folder) {
  const SmallString<128> file = realPlace(path, false),
                         base = realPlace(folder, true);
  auto ours = llvm::sys::path::begin(file),
       oursEnd = llvm::sys::path::end(file);
  auto theirs = llvm::sys::path::begin(base),
       theirsEnd = llvm::sys::path::end(base);
  size_t common = 0;
  for (; ours != oursEnd && theirs != theirsEnd && *ours == *theirs;
       ++ours, ++theirs)
    ++common;
  if (common < 2) // only the root
    return std::string(file);
  SmallString<128> relative;
  for (; theirs != theirsEnd; ++theirs)
    llvm::sys::path::append(relative, "..");
  for (; ours != oursEnd; ++ours)
    llvm::sys::path::append(relative, *ours);
  return std::string(relative);
}

static int64_t countParameters(const WeightSource &source) {
  int64_t count = 0;
  for (const WeightTensor &tensor : source.tensors())
    count += tensor.elements();
  return count;
}

static DictionaryAttr describe(OpBuilder &builder, const ModelConfig &config,
                               const WeightSource &source) {
  const LayerConfig &layer = config.layers.front();
  const auto text = [&](StringRef name, StringRef value) {
    return builder.getNamedAttr(name, builder.getStringAttr(value));
  };
  const auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  SmallVector<NamedAttribute> entries{
      text("name", config.name),
      text("architecture", config.architecture),
      number("context", config.context),
      number("width", config.width),
      number("layers", int64_t(config.layers.size())),
      number("heads", layer.heads),
      number("kv_heads", layer.kvHeads),
      number("head_size", config.keySize),
      number("feed_forward", layer.feedForward),
      number("vocabulary", config.vocabulary),
      number("parameters", countParameters(source)),
  };
  if (!config.license.empty())
    entries.push_back(text("license", config.license));
  return builder.getDictionaryAttr(entries);
}

void GraphBuilder::buildSymbols(const WeightSource &source) {
  NamedAttrList description(describe(builder, config, source));
  if (!weights.leftOut.empty())
    description.set("left_out",
                    builder.getStringAttr(llvm::join(weights.leftOut, ", ")));
  module->setAttr("llm.model", description.getDictionary(builder.getContext()));
  builder.setInsertionPointToEnd(module.getBody());
  SourceOp::create(
      builder, loc, builder.getStringAttr(this->source),
      builder.getStringAttr(relativePath(source.path(), options.folder)),
      builder.getStringAttr(source.formatName()),
      builder.getI64IntegerAttr(int64_t(source.fileBytes())),
      builder.getStringAttr(
          llvm::utohexstr(source.fingerprint(), /*LowerCase=*/true, 16)));
  // A checkpoint's tokenizer lies beside its weights.
  const auto *gguf = dynamic_cast<const GGUFFile *>(&source);
  if (gguf ? gguf->metadata().has("tokenizer.ggml.tokens")
           : !findCheckpointTokenizer(
                  llvm::sys::path::parent_path(source.path()))
                  .empty())
    TokenizerOp::create(builder, loc, builder.getStringAttr("tokenizer"),
                        FlatSymbolRefAttr::get(builder.getContext(), this->source),
                        DenseI32ArrayAttr());

  // One symbol for all layers with caches of one type.
  const int64_t capacity = options.capacity
                               ? options.capacity
                               : std::min(config.context, kDefaultCapacity);
  const Type element = options.cacheBits == 32 ? Type(builder.getF32Type())
                                               : Type(builder.getF16Type());
  SmallVector<std::pair<KVType, int64_t>> counts;
  for (const LayerConfig &layer : config.layers) {
    CacheSlot &slot = caches.emplace_back();
    if (layer.heads == 0)
      continue;
    slot.type = KVType::get(module.getContext(), layer.kvHeads, config.keySize,
                            config.valueSize, element, element, capacity,
                            layer.window, /*sinks=*/0);
    auto found = llvm::find_if(
        counts, [&](const auto &entry) { return entry.first == slot.type; });
    if (found == counts.end())
      found = counts.insert(counts.end(), {slot.type, 0});
    const size_t group = size_t(found - counts.begin());
    slot.symbol = group == 0 ? "kv" : "kv" + std::to_string(group);
    slot.index = found->second++;
  }
  for (const auto [group, entry] : llvm::enumerate(counts))
    KVCacheOp::create(builder, loc,
                      group == 0 ? "kv" : "kv" + std::to_string(group),
                      entry.second, entry.first);
}
