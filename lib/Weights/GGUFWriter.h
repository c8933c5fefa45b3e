// Builds small GGUF files in memory: for tests and generated models.
#ifndef SPRIG_LIB_WEIGHTS_GGUFWRITER_H
#define SPRIG_LIB_WEIGHTS_GGUFWRITER_H

#include "lib/Quant/Format.h"
#include "lib/Weights/GGUFMetadata.h"
#include <string>
#include <type_traits>
#include <vector>

namespace mlir::llm {

class GGUFWriter {
public:
  explicit GGUFWriter(uint32_t version = 3, uint64_t alignment = 32)
      : version(version), alignment(alignment) {}

  // Metadata, in the order of the calls. The type of the argument is the type
  // in the file: uint8_t … int64_t, float, double, bool.
  template <typename T>
  requires std::is_arithmetic_v<T>
  void add(llvm::StringRef key, T value) {
    addScalar(key, typeOf<T>(), &value, sizeof(T));
  }
  void add(llvm::StringRef key, llvm::StringRef text);
  template <typename T>
  void addArray(llvm::StringRef key, llvm::ArrayRef<T> values) {
    addArrayOf(key, typeOf<T>(), values.size(), values.data(),
               values.size() * sizeof(T));
  }
  void addStrings(llvm::StringRef key, llvm::ArrayRef<std::string> values);

  /// Shape is row-major, as in WeightTensor; `bytes` are the tensor's blocks.
  void addTensor(llvm::StringRef name, sprig::quant::Format format,
                 llvm::ArrayRef<int64_t> shape, std::vector<std::byte> bytes);
  /// Encodes numbers to the format. Errors: a format without an encoder, or
  /// rows that are not whole blocks.
  llvm::Error addTensor(llvm::StringRef name, sprig::quant::Format format,
                        llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<float> numbers);

  /// The whole file. An alignment other than 32 is written to the metadata.
  std::vector<std::byte> bytes() const;
  llvm::Error write(llvm::StringRef path) const;

private:
  struct Tensor {
    std::string name;
    sprig::quant::Format format;
    llvm::SmallVector<int64_t, 4> shape;
    std::vector<std::byte> bytes;
  };

  template <typename T> static GGUFType typeOf();
  void addScalar(llvm::StringRef key, GGUFType type, const void *data,
                 size_t size);
  void addArrayOf(llvm::StringRef key, GGUFType type, uint64_t count,
                  const void *data, size_t size);

  uint32_t version;
  uint64_t alignment;
  uint64_t valueCount = 0;
  std::vector<std::byte> values;
  std::vector<Tensor> tensors;
};

template <> inline GGUFType GGUFWriter::typeOf<uint8_t>() {
  return GGUFType::U8;
}
template <> inline GGUFType GGUFWriter::typeOf<int8_t>() {
  return GGUFType::I8;
}
template <> inline GGUFType GGUFWriter::typeOf<uint16_t>() {
  return GGUFType::U16;
}
template <> inline GGUFType GGUFWriter::typeOf<int16_t>() {
  return GGUFType::I16;
}
template <> inline GGUFType GGUFWriter::typeOf<uint32_t>() {
  return GGUFType::U32;
}
template <> inline GGUFType GGUFWriter::typeOf<int32_t>() {
  return GGUFType::I32;
}
template <> inline GGUFType GGUFWriter::typeOf<uint64_t>() {
  return GGUFType::U64;
}
template <> inline GGUFType GGUFWriter::typeOf<int64_t>() {
  return GGUFType::I64;
}
template <> inline GGUFType GGUFWriter::typeOf<float>() {
  return GGUFType::F32;
}
template <> inline GGUFType GGUFWriter::typeOf<double>() {
  return GGUFType::F64;
}
template <> inline GGUFType GGUFWriter::typeOf<bool>() {
  return GGUFType::Bool;
}

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_GGUFWRITER_H
