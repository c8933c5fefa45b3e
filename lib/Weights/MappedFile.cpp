#include "lib/Weights/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mlir::llm {

llvm::Expected<MappedFile> MappedFile::open(llvm::StringRef path) {
  const auto failed = [&](const char *action) {
    return llvm::createStringError(llvm::Twine("cannot ") + action + " '" +
                                   path + "': " + std::strerror(errno));
  };
  std::string name = path.str();
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failed("open");
  struct stat status;
  if (::fstat(file, &status) != 0) {
    llvm::Error error = failed("examine");
    ::close(file);
    return error;
  }
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(file);
    return llvm::createStringError(
        "'" + path + "' is " +
        (S_ISREG(status.st_mode) ? "an empty file" : "not a regular file"));
  }
  const size_t size = static_cast<size_t>(status.st_size);
  void *data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  // The mapping outlives the descriptor.
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (data == MAP_FAILED)
    return failed("map");
  return MappedFile(std::move(name), static_cast<const std::byte *>(data),
                    size);
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

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<std::byte *>(data), size);
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
