#include "lib/Weights/MappedFile.h"
#include "llvm/ADT/ScopeExit.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mlir::llm {

static llvm::Error failed(const llvm::Twine &action, llvm::StringRef path) {
  return llvm::createStringError("cannot " + action + " '" + path +
                                 "': " + std::strerror(errno));
}

llvm::Error MappedFile::map(int file, uint64_t first, size_t bytes) {
  before = first % static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void *mapped = ::mmap(nullptr, before + bytes, PROT_READ, MAP_SHARED, file,
                        static_cast<off_t>(first - before));
  if (mapped == MAP_FAILED)
    return failed("map", name);
  data = static_cast<const std::byte *>(mapped) + before;
  size = bytes;
  return llvm::Error::success();
}

llvm::Expected<MappedFile> MappedFile::open(llvm::StringRef path) {
  MappedFile result(path.str());
  const int file = ::open(result.name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failed("open", path);
  // The mapping outlives the descriptor.
  const llvm::scope_exit close([&] { ::close(file); });
  struct stat status;
  if (::fstat(file, &status) != 0)
    return failed("examine", path);
  if (!S_ISREG(status.st_mode))
    return llvm::createStringError("'" + path + "' is not a regular file");
  if (status.st_size == 0)
    return llvm::createStringError("'" + path + "' is an empty file");
  if (llvm::Error error =
          result.map(file, 0, static_cast<size_t>(status.st_size)))
    return error;
  return result;
}

llvm::Expected<MappedFile> MappedFile::openRange(llvm::StringRef path,
                                                 uint64_t first, size_t bytes) {
  MappedFile result(path.str());
  const int file = ::open(result.name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failed("open", path);
  const llvm::scope_exit close([&] { ::close(file); });
  if (llvm::Error error = result.map(file, first, bytes))
    return error;
  return result;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)),
      before(std::exchange(other.before, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(before, other.before);
  return *this;
}

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<std::byte *>(data - before), before + size);
}

void MappedFile::release(std::span<const std::byte> range) const {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first =
      (reinterpret_cast<uintptr_t>(range.data()) + page - 1) / page * page;
  const uintptr_t last =
      reinterpret_cast<uintptr_t>(range.data() + range.size()) / page * page;
  // A hint: nothing is wrong where the system does not take it.
  if (first < last)
    (void)::madvise(reinterpret_cast<void *>(first), last - first,
                    MADV_DONTNEED);
}

} // namespace mlir::llm
