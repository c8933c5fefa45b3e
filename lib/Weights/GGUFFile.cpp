#include "lib/Weights/GGUFFile.h"
#include "lib/Weights/ByteReader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::llm {

namespace quant = sprig::quant;

namespace {

constexpr llvm::StringLiteral kMagic = "GGUF", kSwappedMagic = "FUGG";
constexpr uint32_t kMostDimensions = 4;
constexpr unsigned kMostNesting = 4;
/// Bytes of the smallest value (key length, type, u8) and of the smallest
/// tensor entry (name length, rank, one size, type, offset).
constexpr uint64_t kLeastValue = 8 + 4 + 1;
constexpr uint64_t kLeastTensor = 8 + 4 + 8 + 4 + 8;

/// Bytes of a number; 0 for strings and arrays and for no type at all.
size_t numberBytes(uint32_t type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

/// Keys come from the file: show them short and printable.
std::string shown(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream out(result);
  llvm::printEscapedString(text.take_front(80), out);
  return text.size() > 80 ? result + "…" : result;
}

} // namespace

class GGUFParser {
public:
  explicit GGUFParser(GGUFFile &gguf) : gguf(gguf), reader(gguf.file.bytes()) {}

  llvm::Error parse() {
    if (llvm::Error error = parseHeader())
      return error;
    gguf.keyValues.path = gguf.path().str();
    for (uint64_t i = 0; i < valueCount; ++i)
      if (llvm::Error error = parseValue())
        return error;
    if (llvm::Error error = readAlignment())
      return error;
    entries.reserve(tensorCount);
    for (uint64_t i = 0; i < tensorCount; ++i)
      if (llvm::Error error = parseTensor())
        return error;
    return placeTensors();
  }

private:
  struct Entry {
    WeightTensor tensor;
    uint64_t offset, bytes;
  };

  llvm::Error failed(const llvm::Twine &message) const {
    return llvm::createStringError(gguf.path() + ": " + message);
  }
  llvm::Error cutShort(const llvm::Twine &what) const {
    return failed(
        llvm::Twine(what) + " at byte " + llvm::Twine(reader.offset()) +
        " runs past the end of the file (" + llvm::Twine(gguf.fileBytes()) +
        " bytes); the file is cut short or damaged, fetch it again");
  }

  llvm::Error parseHeader() {
    std::span<const std::byte> magic;
    if (!reader.take(4, magic) || !reader.read(gguf.versionNumber))
      return cutShort("the header");
    // Big-endian writers swap the version, and some the magic too.
    const uint32_t version = gguf.versionNumber;
    if (asText(magic) == kSwappedMagic ||
        (asText(magic) == kMagic && version && (version & 0xffff) == 0))
      return failed("expects a little-endian GGUF file, but got a big-endian "
                    "one; convert it with the gguf package's "
                    "gguf-convert-endian");
    if (asText(magic) != kMagic)
      return failed("expects the magic 'GGUF', but got '" +
                    shown(asText(magic)) + "'; this is not a GGUF file");
    if (version != 2 && version != 3)
      return failed("expects GGUF version 2 or 3, but got " +
                    llvm::Twine(version));
    if (!reader.read(tensorCount) || !reader.read(valueCount))
      return cutShort("the header");
    if (valueCount > reader.remaining() / kLeastValue)
      return failed("expects at most " +
                    llvm::Twine(reader.remaining() / kLeastValue) +
                    " metadata values in a file of this size, but got " +
                    llvm::Twine(valueCount));
    if (tensorCount > reader.remaining() / kLeastTensor)
      return failed("expects at most " +
                    llvm::Twine(reader.remaining() / kLeastTensor) +
                    " tensors in a file of this size, but got " +
                    llvm::Twine(tensorCount));
    return llvm::Error::success();
  }

  llvm::Error readString(llvm::StringRef &text, const llvm::Twine &what) {
    uint64_t length;
    if (!reader.read(length))
      return cutShort(what);
    std::span<const std::byte> bytes;
    if (!reader.take(length, bytes))
      return cutShort(what + " of " + llvm::Twine(length) + " bytes");
    text = asText(bytes);
    return llvm::Error::success();
  }

  llvm::Error parseValue() {
    GGUFValue value;
    if (llvm::Error error = readString(value.key, "a metadata key"))
      return error;
    uint32_t type;
    if (!reader.read(type))
      return cutShort("the type of metadata '" + shown(value.key) + "'");
    if (type > uint32_t(GGUFType::F64))
      return failed("metadata '" + shown(value.key) +
                    "' expects a type from 0 to 12, but got " +
                    llvm::Twine(type));
    value.type = GGUFType(type);
    if (llvm::Error error =
            value.isArray() ? skipArray(value, 1) : readScalar(value))
      return error;
    GGUFMetadata &metadata = gguf.keyValues;
    if (!metadata.indexOfKey.try_emplace(value.key, metadata.table.size())
             .second)
      return failed("expects every metadata key once, but '" +
                    shown(value.key) + "' is there twice");
    metadata.table.push_back(value);
    return llvm::Error::success();
  }

  llvm::Error readScalar(GGUFValue &value) {
    const std::string what = "metadata '" + shown(value.key) + "'";
    if (value.type == GGUFType::String) {
      llvm::StringRef text;
      if (llvm::Error error = readString(text, what))
        return error;
      value.bytes = std::as_bytes(std::span(text.data(), text.size()));
      return llvm::Error::success();
    }
    if (!reader.take(numberBytes(uint32_t(value.type)), value.bytes))
      return cutShort(what);
    return llvm::Error::success();
  }

  /// Checks an array and finds its end; only strings and nested arrays need a
  /// look at the elements.
  llvm::Error skipArray(GGUFValue &value, unsigned depth) {
    const std::string what = "metadata '" + shown(value.key) + "'";
    if (depth > kMostNesting)
      return failed(what + " expects arrays nested at most " +
                    llvm::Twine(kMostNesting) + " deep");
    uint32_t type;
    if (!reader.read(type) || !reader.read(value.count))
      return cutShort(what);
    if (type > uint32_t(GGUFType::F64))
      return failed(what +
                    " expects elements of a type from 0 to 12, but got " +
                    llvm::Twine(type));
    value.elementType = GGUFType(type);
    const size_t first = reader.offset();
    if (const size_t bytes = numberBytes(type)) {
      if (value.count > reader.remaining() / bytes ||
          !reader.take(value.count * bytes, value.bytes))
        return cutShort(what + ", an array of " + llvm::Twine(value.count));
      return llvm::Error::success();
    }
    // A string takes at least 8 bytes, an array 12: no count can loop forever.
    if (value.count > reader.remaining() / 8)
      return cutShort(what + ", an array of " + llvm::Twine(value.count));
    for (uint64_t i = 0; i < value.count; ++i) {
      if (value.elementType == GGUFType::String) {
        llvm::StringRef text;
        if (llvm::Error error =
                readString(text, "string " + llvm::Twine(i) + " of " + what))
          return error;
        continue;
      }
      GGUFValue nested;
      nested.key = value.key;
      if (llvm::Error error = skipArray(nested, depth + 1))
        return error;
    }
    value.bytes = gguf.file.bytes().subspan(first, reader.offset() - first);
    return llvm::Error::success();
  }

  llvm::Error readAlignment() {
    llvm::Expected<uint64_t> alignment =
        gguf.keyValues.getUnsigned("general.alignment", 32);
    if (!alignment)
      return alignment.takeError();
    if (!llvm::isPowerOf2_64(*alignment) || *alignment > 1u << 30)
      return failed("metadata 'general.alignment' expects a power of two, but "
                    "got " +
                    llvm::Twine(*alignment));
    gguf.dataAlignment = *alignment;
    return llvm::Error::success();
  }

  llvm::Error parseTensor() {
    Entry entry;
    if (llvm::Error error = readString(entry.tensor.key, "a tensor's name"))
      return error;
    const std::string what = "tensor '" + shown(entry.tensor.key) + "'";
    uint32_t rank, type;
    if (!reader.read(rank))
      return cutShort(what);
    if (rank == 0 || rank > kMostDimensions)
      return failed(what + " expects 1 to 4 dimensions, but got " +
                    llvm::Twine(rank));
    // The file lists the contiguous dimension first.
    uint64_t sizes[kMostDimensions];
    uint64_t elements = 1;
    bool overflow = false;
    for (uint32_t i = 0; i < rank; ++i) {
      if (!reader.read(sizes[i]))
        return cutShort(what);
      if (sizes[i] == 0)
        return failed(what +
                      " expects dimensions of at least 1, but dimension " +
                      llvm::Twine(i) + " is 0");
      overflow |= sizes[i] > uint64_t(INT64_MAX) / elements;
      if (!overflow)
        elements *= sizes[i];
    }
    if (overflow)
      return failed(what + " expects fewer than 2^63 elements");
    if (!reader.read(type) || !reader.read(entry.offset))
      return cutShort(what);

    const auto format = quant::formatOfGGUF(type);
    if (!format)
      return failed(what + " has type " + llvm::Twine(type) +
                    ", which is none of the formats that Sprig reads");
    const quant::FormatInfo &row = quant::info(*format);
    if (sizes[0] % row.blockElements != 0)
      return failed(what + " expects rows of a multiple of " +
                    llvm::Twine(row.blockElements) + " numbers for type " +
                    row.name + ", but got " + llvm::Twine(sizes[0]));
    const uint64_t blocks = elements / row.blockElements;
    if (blocks > uint64_t(INT64_MAX) / row.blockBytes)
      return failed(what + " expects fewer than 2^63 bytes");
    entry.bytes = blocks * row.blockBytes;
    entry.tensor.format = *format;
    for (uint32_t i = rank; i-- > 0;)
      entry.tensor.shape.push_back(int64_t(sizes[i]));
    entries.push_back(std::move(entry));
    return llvm::Error::success();
  }

  /// The data section begins at the first aligned byte after the table.
  llvm::Error placeTensors() {
    const uint64_t end = gguf.fileBytes();
    const uint64_t begin =
        std::min(llvm::alignTo(reader.offset(), gguf.dataAlignment), end);
    const uint64_t available = end - begin;
    for (Entry &entry : entries) {
      const std::string what = "tensor '" + shown(entry.tensor.key) + "'";
      if (entry.offset % gguf.dataAlignment != 0)
        return failed(what + " expects an offset that is a multiple of " +
                      llvm::Twine(gguf.dataAlignment) + ", but got " +
                      llvm::Twine(entry.offset));
      if (entry.offset > available || entry.bytes > available - entry.offset)
        return failed(what + " expects " + llvm::Twine(entry.bytes) +
                      " bytes at offset " + llvm::Twine(entry.offset) +
                      " of the data, but the file ends after " +
                      llvm::Twine(available) +
                      "; it is cut short, fetch it again");
      entry.tensor.data =
          gguf.file.bytes().subspan(begin + entry.offset, entry.bytes);
      if (!gguf.addTensor(entry.tensor))
        return failed("expects every tensor once, but '" +
                      shown(entry.tensor.key) + "' is there twice");
    }
    llvm::sort(entries, [](const Entry &a, const Entry &b) {
      return a.offset < b.offset;
    });
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].offset < entries[i - 1].offset + entries[i - 1].bytes)
        return failed("tensors '" + shown(entries[i - 1].tensor.key) +
                      "' and '" + shown(entries[i].tensor.key) +
                      "' overlap in the file");
    return llvm::Error::success();
  }

  GGUFFile &gguf;
  ByteReader reader;
  uint64_t tensorCount = 0, valueCount = 0;
  std::vector<Entry> entries;
};

bool looksLikeGGUF(std::span<const std::byte> bytes) {
  const llvm::StringRef text =
      asText(bytes.first(std::min<size_t>(4, bytes.size())));
  return text == kMagic || text == kSwappedMagic;
}

llvm::Expected<std::unique_ptr<GGUFFile>> GGUFFile::open(llvm::StringRef path) {
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::Expected<std::unique_ptr<GGUFFile>> gguf = parse(std::move(*file));
  if (!gguf)
    return gguf.takeError();
  if (llvm::Error error = (*gguf)->addParts())
    return error;
  return gguf;
}

llvm::Expected<std::unique_ptr<GGUFFile>> GGUFFile::parse(MappedFile file) {
  std::unique_ptr<GGUFFile> gguf(new GGUFFile(std::move(file)));
  if (llvm::Error error = GGUFParser(*gguf).parse())
    return error;
  return gguf;
}

} // namespace mlir::llm
