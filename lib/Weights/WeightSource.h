// Files that hold weights, whatever their format.
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTSOURCE_H
#define SPRIG_LIB_WEIGHTS_WEIGHTSOURCE_H

#include "lib/Quant/Format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <memory>
#include <span>

namespace mlir::llm {

/// One tensor of a file. Key and data live as long as the source.
struct WeightTensor {
  llvm::StringRef key;
  sprig::quant::Format format;
  /// Row-major: the last size is the one that lies contiguously. GGUF tensors
  /// have one to four sizes, none of them 0; safetensors have any number (none
  /// for a scalar), and zeros among them.
  llvm::SmallVector<int64_t, 4> shape;
  std::span<const std::byte> data;

  int64_t elements() const;
  /// The product of all sizes but the last: the number of rows.
  int64_t rows() const;
  /// The last size; 1 for a scalar.
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  size_t rowBytes() const {
    return sprig::quant::info(format).rowBytes(size_t(columns()));
  }
};

/// A memory-mapped file (or set of files) of named tensors.
class WeightSource {
public:
  virtual ~WeightSource() = default;

  llvm::StringRef path() const { return name; }
  /// "gguf" or "safetensors".
  virtual llvm::StringRef formatName() const = 0;
  /// Of all files together.
  virtual uint64_t fileBytes() const = 0;
  /// Lets the system forget pages that have been read; see MappedFile.
  virtual void release(std::span<const std::byte> range) const = 0;

  /// In the order of the file's table.
  llvm::ArrayRef<WeightTensor> tensors() const { return table; }
  /// The tensor with that key, or null.
  const WeightTensor *find(llvm::StringRef key) const;
  /// The same, with an error that names the file and the nearest key.
  llvm::Expected<const WeightTensor *> get(llvm::StringRef key) const;

  /// Tells one file from another without reading it all: a hash of the table
  /// and of the first bytes of each tensor.
  uint64_t fingerprint() const;

protected:
  explicit WeightSource(llvm::StringRef path) : name(path.str()) {}
  /// False when the key was there already.
  bool addTensor(WeightTensor tensor);

private:
  std::string name;
  llvm::SmallVector<WeightTensor, 0> table;
  llvm::DenseMap<llvm::StringRef, size_t> indexOfKey;
};

/// Opens a GGUF or safetensors file, told apart by their content, or the index
/// of a sharded checkpoint (a name that ends in .index.json).
llvm::Expected<std::unique_ptr<WeightSource>>
openWeightSource(llvm::StringRef path);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_WEIGHTSOURCE_H
