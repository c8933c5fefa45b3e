#include "runtime/Support/MappedFile.h"
#include "runtime/Support/Strings.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sprig {

Result<MappedFile> MappedFile::open(const std::string &path) {
  auto failed = [&](const char *what) {
    int error = errno;
    return Status(error == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
                  concat(path, ": ", what, ": ", std::strerror(error)));
  };
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failed("cannot open");
  struct stat info;
  if (fstat(file, &info) != 0) {
    Status status = failed("cannot look at");
    ::close(file);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(file);
    return Status(StatusCode::InvalidArgument,
                  concat(path, ": expects a file, but got something else "
                               "(a folder or a device)"));
  }
  MappedFile mapped;
  mapped.name = path;
  mapped.count = uint64_t(info.st_size);
  if (mapped.count > 0) {
    void *memory = mmap(nullptr, mapped.count, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) {
      mapped.count = 0;
      Status status = failed("cannot map");
      ::close(file);
      return status;
    }
    mapped.bytes = static_cast<const uint8_t *>(memory);
  }
  ::close(file); // the mapping keeps the file
  return mapped;
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(count, other.count);
  std::swap(name, other.name);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), count);
}

void MappedFile::release(uint64_t offset, uint64_t length) const {
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t begin = (offset + page - 1) / page * page;
  uint64_t end = (offset + length) / page * page;
  if (end > begin && end <= (count + page - 1) / page * page)
    madvise(const_cast<uint8_t *>(bytes) + begin, end - begin, MADV_DONTNEED);
}

} // namespace sprig
