// lib/Weights/MappedFile.h over a file in memory.
#include "MemoryFile.h"
#include "lib/Weights/MappedFile.h"

#include <utility>

namespace mlir::llm {

using sprig::fuzz::MemoryFile;

llvm::Expected<MappedFile> MappedFile::open(llvm::StringRef path) {
  const auto all = MemoryFile::contents();
  if (!MemoryFile::isNamed(path) || all.empty())
    return llvm::createStringError("cannot open '" + path + "'");
  MappedFile result(path.str());
  result.data = all.data();
  result.size = all.size();
  return result;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(data, other.data);
  std::swap(size, other.size);
  return *this;
}

MappedFile::~MappedFile() = default;

void MappedFile::release(std::span<const std::byte>) const {}

} // namespace mlir::llm
