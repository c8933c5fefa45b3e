#include "lib/Weights/SafetensorsWriter.h"
#include "lib/Weights/SafetensorsFile.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::llm {

namespace quant = sprig::quant;

namespace {

/// Room kept for the header until its length is known, about 500 tensors. The
/// format pads headers with spaces, so a shorter header may leave it as it is.
constexpr uint64_t kReserved = 64 * 1024;

std::span<const std::byte> asBytes(llvm::StringRef text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

} // namespace

llvm::Expected<std::unique_ptr<SafetensorsWriter>>
SafetensorsWriter::create(llvm::StringRef path) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(std::move(*file)));
  const std::string spaces(kReserved, ' ');
  if (llvm::Error error = writer->file->append(asBytes(spaces)))
    return error;
  return writer;
}

llvm::Error SafetensorsWriter::checkComplete() const {
  if (entries.empty())
    return llvm::Error::success();
  const Entry &last = entries.back();
  const uint64_t got = file->size() - kReserved - last.begin;
  if (got == last.end - last.begin)
    return llvm::Error::success();
  return llvm::createStringError(path() + ": tensor '" + last.key +
                                 "' expects " +
                                 llvm::Twine(last.end - last.begin) +
                                 " bytes, but got " + llvm::Twine(got));
}

llvm::Error SafetensorsWriter::begin(llvm::StringRef key, quant::Format format,
                                     llvm::ArrayRef<int64_t> shape) {
  if (llvm::Error error = checkComplete())
    return error;
  const quant::FormatInfo &row = quant::info(format);
  if (!row.isPlain())
    return llvm::createStringError(
        path() + ": tensor '" + key +
        "' expects a plain type, but got blocks of " + row.name);
  if (key == "__metadata__" || !keys.insert(key).second)
    return llvm::createStringError(path() +
                                   ": expects every tensor once, but "
                                   "'" +
                                   key + "' is written twice");
  uint64_t bytes = row.blockBytes;
  for (int64_t size : shape)
    bytes *= uint64_t(size);
  const uint64_t first = file->size() - kReserved;
  entries.push_back({key.str(), format, llvm::SmallVector<int64_t, 4>(shape),
                     first, first + bytes});
  return llvm::Error::success();
}

llvm::Error SafetensorsWriter::write(std::span<const std::byte> bytes) {
  return file->append(bytes);
}

llvm::Error SafetensorsWriter::add(llvm::StringRef key, quant::Format format,
                                   llvm::ArrayRef<int64_t> shape,
                                   std::span<const std::byte> bytes) {
  if (llvm::Error error = begin(key, format, shape))
    return error;
  return write(bytes);
}

uint64_t SafetensorsWriter::dataBytes() const {
  return file->size() - kReserved;
}

std::pair<uint64_t, uint64_t> SafetensorsWriter::lastRange() const {
  return {kReserved + entries.back().begin, kReserved + entries.back().end};
}

std::string SafetensorsWriter::header(
    const std::map<std::string, std::string> &metadata) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    if (!metadata.empty())
      json.attributeObject("__metadata__", [&] {
        for (const auto &[key, value] : metadata)
          json.attribute(llvm::json::fixUTF8(key), llvm::json::fixUTF8(value));
      });
    for (const Entry &entry : entries)
      json.attributeObject(entry.key, [&] {
        json.attribute("dtype",
                       llvm::StringRef(quant::info(entry.format).name));
        json.attributeArray("shape", [&] {
          for (int64_t size : entry.shape)
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(entry.begin);
          json.value(entry.end);
        });
      });
  });
  return text;
}

/// Goes on in a new file whose data begins at byte `begin`. Not in place:
/// readers may have mapped the old one.
llvm::Error SafetensorsWriter::growHeader(uint64_t begin) {
  auto grown = OutputFile::create(path());
  if (!grown)
    return grown.takeError();
  if (llvm::Error error = (*grown)->append(std::vector<std::byte>(begin)))
    return error;
  std::vector<std::byte> piece(4 << 20);
  for (uint64_t at = kReserved; at < file->size();) {
    const auto bytes = std::span(piece).first(
        std::min<uint64_t>(piece.size(), file->size() - at));
    if (llvm::Error error = file->readAt(at, bytes))
      return error;
    if (llvm::Error error = (*grown)->append(bytes))
      return error;
    at += bytes.size();
  }
  file = std::move(*grown);
  return llvm::Error::success();
}

llvm::Error
SafetensorsWriter::finish(const std::map<std::string, std::string> &metadata) {
  if (llvm::Error error = checkComplete())
    return error;
  std::string text = header(metadata);
  const uint64_t begin =
      std::max(kReserved, llvm::alignTo(8 + text.size(), 4096));
  if (begin - 8 > kMostSafetensorsHeader)
    return llvm::createStringError(path() + ": too many tensors for one file");
  if (begin != kReserved)
    if (llvm::Error error = growHeader(begin))
      return error;
  text.resize(begin - 8, ' ');
  const uint64_t length = text.size();
  if (llvm::Error error =
          file->writeAt(0, std::as_bytes(std::span(&length, 1))))
    return error;
  if (llvm::Error error = file->writeAt(8, asBytes(text)))
    return error;
  auto check = SafetensorsFile::open(file->temporaryPath());
  if (!check)
    return check.takeError();
  check->reset();
  return file->commit();
}

} // namespace mlir::llm
