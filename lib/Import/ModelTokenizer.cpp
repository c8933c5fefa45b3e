#include "lib/Import/ModelTokenizer.h"

#include "lib/Import/CheckpointTokenizer.h"
#include "lib/Import/GGUFTokenizer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::Expected;
using llvm::StringRef;

namespace mlir::llm {

Expected<std::optional<ModelTokenizer>>
readModelTokenizer(const WeightSource &source) {
  if (const auto *gguf = dynamic_cast<const GGUFFile *>(&source))
    return readGGUFTokenizer(*gguf);
  return readCheckpointTokenizer(::llvm::sys::path::parent_path(source.path()));
}

Expected<std::optional<ModelTokenizer>> readModelTokenizer(StringRef path) {
  if (::llvm::sys::fs::is_directory(path))
    return readCheckpointTokenizer(path);
  Expected<std::unique_ptr<GGUFFile>> file = GGUFFile::open(path);
  if (!file)
    return file.takeError();
  return readGGUFTokenizer(**file);
}

} // namespace mlir::llm
