#include "lib/Calibration/StatisticsCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::llm;

/// Begins every file; the number counts versions of what follows.
static constexpr StringLiteral kMagic = "SPRIGCAL1";

namespace {

/// Numbers and arrays of them, back to back, with a hash of all behind.
class Writer {
public:
  Writer() { content = kMagic.str(); }
  void number(int64_t value) { raw(&value, sizeof(value)); }
  template <typename T> void array(const std::vector<T> &values) {
    number(int64_t(values.size()));
    raw(values.data(), values.size() * sizeof(T));
  }
  StringRef finish() {
    const uint64_t hash = llvm::xxh3_64bits(StringRef(content));
    raw(&hash, sizeof(hash));
    return content;
  }

private:
  void raw(const void *data, size_t bytes) { content.append(static_cast<const char *>(data), bytes); }
  std::string content;
};

class Reader {
public:
  explicit Reader(StringRef path) {
    auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file)
      return;
    buffer = std::move(*file);
    rest = buffer->getBuffer();
    uint64_t hash;
    good = rest.size() >= kMagic.size() + sizeof(hash);
    if (!good)
      return;
    std::memcpy(&hash, rest.end() - sizeof(hash), sizeof(hash));
    rest = rest.drop_back(sizeof(hash));
    good = hash == llvm::xxh3_64bits(rest) && rest.consume_front(kMagic);
  }
  explicit operator bool() const { return good; }

  int64_t number() {
    int64_t value = 0;
    raw(&value, sizeof(value));
    return value;
  }
  template <typename T> std::vector<T> array() {
    const int64_t count = number();
    std::vector<T> values;
    if (count < 0 || uint64_t(count) > rest.size() / sizeof(T))
      return good = false, values;
    values.resize(size_t(count));
    raw(values.data(), values.size() * sizeof(T));
    return values;
  }

private:
  void raw(void *data, size_t bytes) {
    good = good && rest.size() >= bytes;
    if (!good)
      return;
    std::memcpy(data, rest.data(), bytes);
    rest = rest.drop_front(bytes);
  }
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  StringRef rest;
  bool good = false;
};

} // namespace

std::string StatisticsCache::path(int64_t place, StringRef kind) const {
  SmallString<256> result(folder);
  llvm::sys::path::append(result, llvm::utohexstr(key, /*LowerCase=*/true, 16) + "-" + llvm::Twine(place) + "." + kind);
  return result.str().str();
}

void StatisticsCache::write(StringRef path, StringRef content) const {
  if (llvm::sys::fs::create_directories(folder))
    return;
  // Under another name until it is whole.
  SmallString<256> temporary;
  int descriptor;
  if (llvm::sys::fs::createUniqueFile(path + ".%%%%%%", descriptor, temporary))
    return;
  {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << content;
    stream.flush();
    if (stream.has_error()) {
      stream.clear_error();
      (void)llvm::sys::fs::remove(temporary);
      return;
    }
  }
  if (llvm::sys::fs::rename(temporary, path))
    (void)llvm::sys::fs::remove(temporary);
}

std::optional<std::vector<InputStatistics>> StatisticsCache::load(int64_t place) const {
  if (folder.empty())
    return std::nullopt;
  Reader reader(path(place, "statistics"));
  if (!reader)
    return std::nullopt;
  std::vector<InputStatistics> all;
  for (int64_t i = 0, count = reader.number(); i < count && reader; ++i) {
    InputStatistics &one = all.emplace_back();
    one.rows = reader.number(), one.width = reader.number();
    one.largest = reader.array<float>(), one.sums = reader.array<double>();
    one.magnitudes = reader.array<double>(), one.squares = reader.array<double>();
    one.gram = reader.array<float>();
  }
  if (!reader)
    return std::nullopt;
  return all;
}

void StatisticsCache::store(int64_t place, ArrayRef<std::shared_ptr<const InputStatistics>> statistics) const {
  if (folder.empty())
    return;
  Writer writer;
  writer.number(int64_t(statistics.size()));
  for (const auto &one : statistics) {
    writer.number(one->rows), writer.number(one->width);
    writer.array(one->largest), writer.array(one->sums);
    writer.array(one->magnitudes), writer.array(one->squares);
    writer.array(one->gram);
  }
  write(path(place, "statistics"), writer.finish());
}

std::optional<std::vector<SavedValue>> StatisticsCache::loadState(int64_t place) const {
  if (folder.empty())
    return std::nullopt;
  Reader reader(path(place, "state"));
  if (!reader)
    return std::nullopt;
  std::vector<SavedValue> values;
  for (int64_t i = 0, count = reader.number(); i < count && reader; ++i) {
    SavedValue &value = values.emplace_back();
    value.op = reader.number(), value.result = reader.number(), value.window = reader.number();
    value.shape = reader.array<int64_t>(), value.numbers = reader.array<float>();
    int64_t elements = 1;
    for (int64_t size : value.shape)
      elements *= size;
    if (elements != int64_t(value.numbers.size()))
      return std::nullopt;
  }
  if (!reader)
    return std::nullopt;
  return values;
}

void StatisticsCache::storeState(int64_t place, ArrayRef<SavedValue> values) {
  if (folder.empty())
    return;
  Writer writer;
  writer.number(int64_t(values.size()));
  for (const SavedValue &value : values) {
    writer.number(value.op), writer.number(value.result), writer.number(value.window);
    writer.array(value.shape), writer.array(value.numbers);
  }
  const std::string next = path(place, "state");
  write(next, writer.finish());
  dropState();
  state = next;
}

void StatisticsCache::dropState() {
  if (!state.empty())
    (void)llvm::sys::fs::remove(state);
  state.clear();
}
