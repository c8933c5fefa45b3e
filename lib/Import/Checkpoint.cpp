#include "lib/Import/Checkpoint.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir::llm;
using llvm::StringRef;

static std::string inside(StringRef folder, StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Files in a folder that end so, in alphabetical order.
static std::vector<std::string> filesEndingIn(StringRef folder, StringRef end) {
  std::vector<std::string> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder, error), last;
       at != last && !error; at.increment(error))
    if (StringRef(at->path()).ends_with(end))
      found.push_back(at->path());
  llvm::sort(found);
  return found;
}

llvm::Expected<std::unique_ptr<WeightSource>>
mlir::llm::openCheckpointWeights(StringRef folder) {
  for (const char *name : {"model.safetensors.index.json", "model.safetensors"})
    if (llvm::sys::fs::exists(inside(folder, name)))
      return openWeightSource(inside(folder, name));
  const std::vector<std::string> files = filesEndingIn(folder, ".safetensors");
  if (files.size() == 1)
    return openWeightSource(files.front());
  if (files.size() > 1)
    return llvm::createStringError(
        "'" + folder + "' expects model.safetensors or an index of the " +
        llvm::Twine(files.size()) +
        " .safetensors files, but got none; was model.safetensors.index.json "
        "left behind?");
  const bool pickled = !filesEndingIn(folder, ".bin").empty() ||
                       !filesEndingIn(folder, ".pth").empty();
  return llvm::createStringError(
      "'" + folder + "' expects weights in model.safetensors, but got " +
      (pickled ? "PyTorch files alone, which are programs; convert them to "
                 "safetensors"
               : "none"));
}
