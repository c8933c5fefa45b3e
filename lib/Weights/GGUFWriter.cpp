#include "lib/Weights/GGUFWriter.h"
#include "lib/Weights/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::llm {

namespace quant = sprig::quant;

namespace {

void append(std::vector<std::byte> &to, const void *data, size_t size) {
  const auto *bytes = static_cast<const std::byte *>(data);
  to.insert(to.end(), bytes, bytes + size);
}

template <typename T> void appendNumber(std::vector<std::byte> &to, T value) {
  append(to, &value, sizeof(T));
}

void appendString(std::vector<std::byte> &to, llvm::StringRef text) {
  appendNumber<uint64_t>(to, text.size());
  append(to, text.data(), text.size());
}

void pad(std::vector<std::byte> &to, uint64_t alignment) {
  to.resize(llvm::alignTo(to.size(), alignment));
}

} // namespace

void GGUFWriter::addScalar(llvm::StringRef key, GGUFType type, const void *data,
                           size_t size) {
  appendString(values, key);
  appendNumber(values, uint32_t(type));
  append(values, data, size);
  ++valueCount;
}

void GGUFWriter::addArrayOf(llvm::StringRef key, GGUFType type, uint64_t count,
                            const void *data, size_t size) {
  appendString(values, key);
  appendNumber(values, uint32_t(GGUFType::Array));
  appendNumber(values, uint32_t(type));
  appendNumber(values, count);
  append(values, data, size);
  ++valueCount;
}

void GGUFWriter::add(llvm::StringRef key, llvm::StringRef text) {
  std::vector<std::byte> string;
  appendString(string, text);
  addScalar(key, GGUFType::String, string.data(), string.size());
}

void GGUFWriter::addStrings(llvm::StringRef key,
                            llvm::ArrayRef<std::string> texts) {
  std::vector<std::byte> strings;
  for (const std::string &text : texts)
    appendString(strings, text);
  addArrayOf(key, GGUFType::String, texts.size(), strings.data(),
             strings.size());
}

void GGUFWriter::addTensor(llvm::StringRef name, quant::Format format,
                           llvm::ArrayRef<int64_t> shape,
                           std::vector<std::byte> bytes) {
  tensors.push_back({name.str(), format, llvm::SmallVector<int64_t, 4>(shape),
                     std::move(bytes)});
}

llvm::Error GGUFWriter::addTensor(llvm::StringRef name, quant::Format format,
                                  llvm::ArrayRef<int64_t> shape,
                                  llvm::ArrayRef<float> numbers) {
  const quant::FormatInfo &row = quant::info(format);
  if (shape.empty() || shape.back() % row.blockElements != 0)
    return llvm::createStringError(
        "tensor '" + name + "' expects rows of whole blocks of " + row.name);
  std::vector<std::byte> bytes(row.rowBytes(numbers.size()));
  if (!quant::encode(format, numbers.data(), bytes.data(), numbers.size()))
    return llvm::createStringError("tensor '" + name +
                                   "' cannot be written as " + row.name);
  addTensor(name, format, shape, std::move(bytes));
  return llvm::Error::success();
}

std::vector<std::byte> GGUFWriter::bytes() const {
  std::vector<std::byte> file;
  append(file, "GGUF", 4);
  appendNumber(file, version);
  appendNumber<uint64_t>(file, tensors.size());
  appendNumber<uint64_t>(file, valueCount + (alignment != 32));
  append(file, values.data(), values.size());
  if (alignment != 32) {
    appendString(file, "general.alignment");
    appendNumber(file, uint32_t(GGUFType::U32));
    appendNumber(file, uint32_t(alignment));
  }
  // Alignments that the format forbids are for tests of readers.
  const uint64_t step = std::max<uint64_t>(alignment, 1);
  uint64_t offset = 0;
  for (const Tensor &tensor : tensors) {
    appendString(file, tensor.name);
    appendNumber(file, uint32_t(tensor.shape.size()));
    for (int64_t size : llvm::reverse(tensor.shape))
      appendNumber(file, uint64_t(size));
    appendNumber(file, uint32_t(tensor.format));
    appendNumber(file, offset);
    offset = llvm::alignTo(offset + tensor.bytes.size(), step);
  }
  for (const Tensor &tensor : tensors) {
    pad(file, step);
    append(file, tensor.bytes.data(), tensor.bytes.size());
  }
  pad(file, step);
  return file;
}

llvm::Error GGUFWriter::write(llvm::StringRef path) const {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = (*file)->append(bytes()))
    return error;
  return (*file)->commit();
}

} // namespace mlir::llm
