#include "runtime/Support/OutputFile.h"
#include "runtime/Support/Strings.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace sprig {

Result<OutputFile> OutputFile::create(const std::string &path) {
  namespace fs = std::filesystem;
  OutputFile made;
  made.target = path;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    if (!fs::is_regular_file(path, ignored))
      return Status(StatusCode::InvalidArgument,
                    concat(path, ": expects a file, or nothing there, but it is ",
                           fs::is_directory(path, ignored) ? "a folder"
                                                           : "a device or a pipe"));
    // The link stays; what it names is replaced.
    if (fs::path real = fs::canonical(path, ignored); !ignored)
      made.target = real.string();
  }
  made.aside = concat(made.target, ".", getpid(), ".part");
  made.file = std::fopen(made.aside.c_str(), "wb");
  if (!made.file)
    return made.failed("cannot write");
  return made;
}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(target, other.target);
  std::swap(aside, other.aside);
  std::swap(file, other.file);
  return *this;
}

OutputFile::~OutputFile() {
  if (!file)
    return;
  std::fclose(file);
  std::remove(aside.c_str());
}

Status OutputFile::failed(const char *what) const {
  return {StatusCode::IoError,
          concat(target, ": ", what, ": ", std::strerror(errno))};
}

Status OutputFile::write(const void *bytes, uint64_t count) {
  if (count != 0 && std::fwrite(bytes, count, 1, file) != 1)
    return failed("cannot write");
  return {};
}

Status OutputFile::rewrite(uint64_t offset, const void *bytes, uint64_t count) {
  if (fseeko(file, off_t(offset), SEEK_SET) != 0)
    return failed("cannot write");
  Status status = write(bytes, count);
  if (status.ok() && fseeko(file, 0, SEEK_END) != 0)
    return failed("cannot write");
  return status;
}

Status OutputFile::commit() {
  const bool closed = std::fclose(std::exchange(file, nullptr)) == 0;
  if (closed && std::rename(aside.c_str(), target.c_str()) == 0)
    return {};
  Status status = failed("cannot write");
  std::remove(aside.c_str());
  return status;
}

} // namespace sprig
