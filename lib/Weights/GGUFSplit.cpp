// Models that gguf-split wrote as several files: MODEL-00001-of-00003.gguf has
// the metadata, and each file has tensors.
#include "lib/Weights/GGUFFile.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

std::string splitSuffix(uint64_t part, uint64_t count) {
  return llvm::formatv("-{0,0+5}-of-{1,0+5}.gguf", part, count).str();
}

llvm::Error GGUFFile::addParts() {
  const auto failed = [&](const llvm::Twine &message) {
    return llvm::createStringError(path() + ": " + message);
  };
  uint64_t count = 1, number = 0;
  if (llvm::Error error =
          keyValues.getUnsigned("split.count", 1).moveInto(count))
    return error;
  if (count <= 1)
    return llvm::Error::success();
  if (llvm::Error error = keyValues.getUnsigned("split.no", 0).moveInto(number))
    return error;
  const auto suffix = [&](uint64_t part) { return splitSuffix(part, count); };
  llvm::StringRef stem = path();
  if (number != 0)
    return failed("expects the first of the " + llvm::Twine(count) +
                  " files of the model, but got number " +
                  llvm::Twine(number + 1) + "; give the one that ends in '" +
                  suffix(1) + "'");
  if (!stem.consume_back(suffix(1)))
    return failed("is the first of " + llvm::Twine(count) +
                  " files of a model; expects a name that ends in '" +
                  suffix(1) + "', by which the others are found");
  for (uint64_t part = 2; part <= count; ++part) {
    auto file = MappedFile::open((stem + suffix(part)).str());
    if (!file)
      return failed("a file of the model cannot be used: " +
                    llvm::toString(file.takeError()));
    llvm::Expected<std::unique_ptr<GGUFFile>> opened = parse(std::move(*file));
    if (!opened)
      return opened.takeError();
    uint64_t itsNumber = 0, itsCount = 0;
    if (llvm::Error error =
            (*opened)->keyValues.getUnsigned("split.no", 0).moveInto(itsNumber))
      return error;
    if (llvm::Error error = (*opened)
                                ->keyValues.getUnsigned("split.count", 1)
                                .moveInto(itsCount))
      return error;
    if (itsNumber != part - 1 || itsCount != count)
      return failed("expects file " + llvm::Twine(part) + " of " +
                    llvm::Twine(count) + " in '" + (*opened)->path() +
                    "', but that is file " + llvm::Twine(itsNumber + 1) +
                    " of " + llvm::Twine(itsCount));
    for (const WeightTensor &tensor : (*opened)->tensors())
      if (!addTensor(tensor))
        return failed("expects every tensor once, but '" + tensor.key +
                      "' is in '" + (*opened)->path() + "' again");
    parts.push_back(std::move(*opened));
  }
  llvm::Expected<uint64_t> total =
      keyValues.getUnsigned("split.tensors.count", tensors().size());
  if (!total)
    return total.takeError();
  if (*total != tensors().size())
    return failed("expects " + llvm::Twine(*total) + " tensors in its " +
                  llvm::Twine(count) + " files, but got " +
                  llvm::Twine(tensors().size()));
  return llvm::Error::success();
}

} // namespace mlir::llm
