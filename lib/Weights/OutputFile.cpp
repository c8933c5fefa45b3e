#include "lib/Weights/OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace mlir::llm {

llvm::Expected<std::unique_ptr<OutputFile>>
OutputFile::create(llvm::StringRef path) {
  llvm::SmallString<256> target(path);
  namespace fs = llvm::sys::fs;
  if (fs::exists(path)) {
    if (!fs::is_regular_file(path))
      return llvm::createStringError(
          "cannot create '" + path +
          "': expects a file, or nothing there, but it is " +
          (fs::is_directory(path) ? "a folder" : "a device or a pipe"));
    // The link stays; what it names is replaced.
    (void)fs::real_path(path, target);
  }
  std::string temporary = (target + ".XXXXXX").str();
  const int file = ::mkstemp(temporary.data());
  if (file < 0)
    return llvm::createStringError("cannot create '" + path +
                                   "': " + std::strerror(errno));
  // mkstemp makes a private file; a model is an ordinary one.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(file, 0666 & ~mask);
  llvm::sys::RemoveFileOnSignal(temporary);
  return std::unique_ptr<OutputFile>(
      new OutputFile(target.str().str(), std::move(temporary), file));
}

OutputFile::~OutputFile() {
  if (file >= 0) {
    ::close(file);
    ::unlink(temporary.c_str());
  }
  llvm::sys::DontRemoveFileOnSignal(temporary);
}

llvm::Error OutputFile::failed(const char *action) const {
  return llvm::createStringError(llvm::Twine("cannot ") + action + " '" +
                                 target + "': " + std::strerror(errno));
}

llvm::Error OutputFile::append(std::span<const std::byte> bytes) {
  return writeAt(end, bytes);
}

llvm::Error OutputFile::alignTo(uint64_t alignment) {
  static constexpr std::byte kZeros[4096] = {};
  uint64_t gap = (alignment - end % alignment) % alignment;
  while (gap) {
    const uint64_t piece = std::min<uint64_t>(gap, sizeof(kZeros));
    if (llvm::Error error = append(std::span(kZeros, piece)))
      return error;
    gap -= piece;
  }
  return llvm::Error::success();
}

llvm::Error OutputFile::writeAt(uint64_t offset,
                                std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file, bytes.data(), bytes.size(), off_t(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failed("write");
    offset += uint64_t(written);
    bytes = bytes.subspan(size_t(written));
    end = std::max(end, offset);
  }
  return llvm::Error::success();
}

llvm::Error OutputFile::readAt(uint64_t offset,
                               std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pread(file, bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failed("read back");
    offset += uint64_t(count);
    bytes = bytes.subspan(size_t(count));
  }
  return llvm::Error::success();
}

llvm::Error OutputFile::commit() {
  if (::fsync(file) != 0)
    return failed("write");
  const int closed = ::close(file);
  file = -1;
  if (closed != 0 || ::rename(temporary.c_str(), target.c_str()) != 0) {
    llvm::Error error = failed("write");
    ::unlink(temporary.c_str());
    return error;
  }
  return llvm::Error::success();
}

llvm::Error writeText(llvm::StringRef path, llvm::StringRef text) {
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    const std::error_code code = llvm::outs().error();
    llvm::outs().clear_error();
    return llvm::errorCodeToError(code);
  }
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = (*file)->append(
          std::as_bytes(std::span(text.data(), text.size()))))
    return error;
  return (*file)->commit();
}

} // namespace mlir::llm
