#include "lib/Weights/OutputGuard.h"

#include "dialects/LLM/LLM.h"
#include "lib/Weights/GGUFFile.h"
#include "lib/Weights/SafetensorsShards.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <filesystem>
#include <set>

namespace mlir::llm {
namespace {

using ::llvm::StringRef;
namespace path = ::llvm::sys::path;
namespace fs = ::llvm::sys::fs;
using Paths = ::llvm::SmallVector<std::string>;

/// Beside weights in a folder: settings, tokenizers and chat templates.
constexpr const char *kBeside[] = {"config.json",           "adapter_config.json", "generation_config.json",
                                   "tokenizer.json",        "tokenizer.model",     "chat_template.json",
                                   "tokenizer_config.json", "chat_template.jinja"};
constexpr const char *kWeights[] = {"model.safetensors.index.json", "model.safetensors", "adapter_model.safetensors"};

std::string inside(StringRef folder, StringRef name) {
  ::llvm::SmallString<256> file(folder);
  path::append(file, name);
  return file.str().str();
}

/// Where bytes go that are written to `file`: a link is followed even if it leads to nothing yet.
std::string placeOf(StringRef file) {
  constexpr int kMostLinks = 40;
  std::error_code failed;
  std::filesystem::path at = std::filesystem::absolute(file.str(), failed);
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(at, failed); ++i)
    at = at.parent_path() / std::filesystem::read_symlink(at, failed); // an absolute one replaces all before it
  const std::filesystem::path place = std::filesystem::weakly_canonical(at, failed);
  return failed ? at.lexically_normal().string() : place.string();
}

/// The files that an index names; none where it is damaged, which its reader says.
Paths shardsOf(StringRef index) {
  auto tensors = readShardIndex(index);
  if (!tensors) {
    ::llvm::consumeError(tensors.takeError());
    return {};
  }
  std::set<std::string> files;
  for (const IndexedTensor &tensor : *tensors)
    files.insert(inside(path::parent_path(index), tensor.file));
  return Paths(files.begin(), files.end());
}

/// MODEL-00001-of-00003.gguf with the parts behind it, or the file alone.
Paths partsOf(StringRef file) {
  constexpr uint64_t kMostParts = 99999;
  StringRef stem = file, digits = file;
  uint64_t count;
  if (!digits.consume_back(".gguf") || digits.rsplit('-').second.getAsInteger(10, count) || count > kMostParts ||
      !stem.consume_back(splitSuffix(1, count)))
    return {file.str()};
  Paths files;
  for (uint64_t part = 1; part <= count; ++part)
    files.push_back((stem + splitSuffix(part, count)).str());
  return files;
}

void addWeights(StringRef file, Paths &files) {
  files.append(partsOf(file));
  if (file.ends_with(".index.json"))
    files.append(shardsOf(file));
}

void addBeside(StringRef folder, Paths &files) {
  for (const char *name : kBeside)
    files.push_back(inside(folder, name));
}

/// Some of them may not be there.
Paths filesOf(StringRef given) {
  Paths files;
  if (!fs::is_directory(given)) {
    addWeights(given, files);
    if (given.ends_with(".safetensors") || given.ends_with(".index.json"))
      addBeside(path::parent_path(given), files);
    return files;
  }
  addBeside(given, files);
  bool named = false;
  for (const char *name : kWeights)
    if (fs::exists(inside(given, name))) {
      addWeights(inside(given, name), files);
      named = true;
    }
  std::error_code failed;
  if (!named) // then the only one is read, whatever its name
    for (fs::directory_iterator at(given, failed), end; at != end && !failed; at.increment(failed))
      if (StringRef(at->path()).ends_with(".safetensors"))
        files.push_back(at->path());
  return files;
}

::llvm::Error overwrites(StringRef output, StringRef file, StringRef input) {
  return ::llvm::createStringError("expects another file for " + output + " than the input '" + file + "' (" + input +
                                   "), which it would overwrite");
}

} // namespace

::llvm::Error OutputGuard::read(StringRef option, StringRef given) {
  if (given.empty())
    return ::llvm::Error::success();
  ::llvm::SmallVector<File> found;
  for (const std::string &file : filesOf(given)) {
    if (!fs::exists(file))
      continue;
    found.push_back({option.str(), file, placeOf(file)});
    for (const File &output : outputs)
      if (output.place == found.back().place || fs::equivalent(output.path, file))
        return overwrites(output.option, file, option);
  }
  inputs.append(found);
  return ::llvm::Error::success();
}

::llvm::Error OutputGuard::readSources(ModuleOp module, StringRef folder) {
  for (auto source : module.getOps<SourceOp>()) {
    const StringRef file = source.getPath().value_or("");
    const bool below = !file.empty() && path::is_relative(file);
    if (::llvm::Error error = read("llm.source @" + source.getSymName().str(),
                                   below ? inside(folder.empty() ? "." : folder, file) : file.str()))
      return error;
  }
  return ::llvm::Error::success();
}

::llvm::Error OutputGuard::write(StringRef option, StringRef given) {
  if (given.empty() || given == "-")
    return ::llvm::Error::success();
  const File made{option.str(), given.str(), placeOf(given)};
  for (const File &input : inputs)
    if (input.place == made.place || fs::equivalent(input.path, given))
      return overwrites(option, input.path, input.option);
  for (const File &output : outputs)
    if (output.place == made.place || fs::equivalent(output.path, given))
      return ::llvm::createStringError("expects different files for " + output.option + " and " + option +
                                       ", but got '" + given + "' for both");
  outputs.push_back(made);
  return ::llvm::Error::success();
}

} // namespace mlir::llm
