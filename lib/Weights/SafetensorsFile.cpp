#include "lib/Weights/SafetensorsFile.h"
#include "lib/Weights/ByteReader.h"
#include "lib/Weights/SafetensorsHeader.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::llm {

namespace quant = sprig::quant;

namespace {

/// The plain format that safetensors calls by this name.
std::optional<quant::Format> formatOfDtype(llvm::StringRef dtype) {
  for (const quant::FormatInfo &row : quant::formats())
    if (row.isPlain() && dtype == llvm::StringRef(row.name))
      return row.format;
  return std::nullopt;
}

/// Product of sizes and element bytes, if it stays below 2^63.
std::optional<uint64_t> bytesOf(llvm::ArrayRef<uint64_t> shape,
                                uint64_t elementBytes) {
  // A zero anywhere makes the tensor empty, however large the others are.
  if (llvm::is_contained(shape, 0u))
    return 0;
  uint64_t bytes = elementBytes;
  for (uint64_t size : shape) {
    if (size > uint64_t(INT64_MAX) / bytes)
      return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

} // namespace

bool looksLikeSafetensors(std::span<const std::byte> bytes) {
  return bytes.size() > 8 && bytes[8] == std::byte('{');
}

llvm::Error SafetensorsFile::read() {
  const auto failed = [&](const llvm::Twine &message) {
    return llvm::createStringError(path() + ": " + message);
  };
  ByteReader reader(file.bytes());
  uint64_t length;
  if (!reader.read(length))
    return failed("expects a header length of 8 bytes, but the file has " +
                  llvm::Twine(fileBytes()));
  if (length > kMostSafetensorsHeader)
    return failed("expects a header of at most 100000000 bytes, but got " +
                  llvm::Twine(length) + "; is this a safetensors file?");
  std::span<const std::byte> json;
  if (!reader.take(length, json))
    return failed("expects a header of " + llvm::Twine(length) +
                  " bytes, but the file ends after " +
                  llvm::Twine(reader.remaining()) +
                  "; it is cut short, fetch it again");
  if (json.empty() || json[0] != std::byte('{'))
    return failed("expects the header to begin with '{'; is this a "
                  "safetensors file?");
  llvm::Expected<SafetensorsHeader> header =
      parseSafetensorsHeader(asText(json));
  if (!header)
    return failed(llvm::toString(header.takeError()));
  strings = std::move(header->metadata);

  const std::span<const std::byte> data = file.bytes().subspan(reader.offset());
  for (SafetensorsEntry &entry : header->entries) {
    const std::string what = "tensor '" + entry.key + "'";
    if (!entry.dtype || !entry.shape || !entry.offsets)
      return failed(what + " expects 'dtype', 'shape' and 'data_offsets'");
    const auto format = formatOfDtype(*entry.dtype);
    if (!format)
      return failed(what + " has the unknown dtype '" + *entry.dtype + "'");
    if (entry.offsets->size() != 2)
      return failed(what + " expects two data_offsets, but got " +
                    llvm::Twine(entry.offsets->size()));
    const uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    if (begin > end)
      return failed(what + " expects data_offsets in order, but got [" +
                    llvm::Twine(begin) + ", " + llvm::Twine(end) + "]");
    const auto bytes = bytesOf(*entry.shape, quant::info(*format).blockBytes);
    if (!bytes || llvm::any_of(*entry.shape, [](uint64_t size) {
          return size > uint64_t(INT64_MAX);
        }))
      return failed(what + " expects fewer than 2^63 bytes");
    if (*bytes != end - begin)
      return failed(what + " expects " + llvm::Twine(*bytes) +
                    " bytes for its shape and dtype, but its data_offsets "
                    "span " +
                    llvm::Twine(end - begin));
    if (end > data.size())
      return failed(what + " ends at byte " + llvm::Twine(end) +
                    " of the data, but the file has " +
                    llvm::Twine(data.size()) +
                    "; it is cut short, fetch it again");
    keys.push_back(std::make_unique<std::string>(std::move(entry.key)));
    addTensor({*keys.back(), *format,
               llvm::SmallVector<int64_t, 4>(entry.shape->begin(),
                                             entry.shape->end()),
               data.subspan(begin, end - begin)});
  }

  // The tensors cover the data without gap or overlap.
  llvm::SmallVector<const WeightTensor *, 0> order;
  for (const WeightTensor &tensor : tensors())
    order.push_back(&tensor);
  llvm::sort(order, [](const WeightTensor *a, const WeightTensor *b) {
    return std::pair(a->data.data(), a->data.size()) <
           std::pair(b->data.data(), b->data.size());
  });
  const std::byte *next = data.data();
  for (const WeightTensor *tensor : order) {
    const std::byte *first = tensor->data.data();
    if (first != next)
      return failed("tensor '" + tensor->key + "' " +
                    (first < next ? "overlaps the one before it"
                                  : "leaves a hole before it"));
    next = first + tensor->data.size();
  }
  if (next != data.data() + data.size())
    return failed("expects the tensors to end with the file, but " +
                  llvm::Twine(data.data() + data.size() - next) +
                  " bytes follow them");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<SafetensorsFile>>
SafetensorsFile::open(llvm::StringRef path) {
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return parse(std::move(*file));
}

llvm::Expected<std::unique_ptr<SafetensorsFile>>
SafetensorsFile::parse(MappedFile file) {
  std::unique_ptr<SafetensorsFile> result(new SafetensorsFile(std::move(file)));
  if (llvm::Error error = result->read())
    return error;
  return result;
}

} // namespace mlir::llm
