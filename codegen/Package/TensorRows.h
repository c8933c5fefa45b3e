// The rows of a weight expression, read as they are asked for: an expression is
// never whole in memory.
#ifndef SPRIG_CODEGEN_PACKAGE_TENSORROWS_H
#define SPRIG_CODEGEN_PACKAGE_TENSORROWS_H

#include "lib/Weights/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>

namespace mlir::llm {

/// The files behind the `llm.source` symbols of a module, opened when they are
/// first used.
class WeightFiles {
public:
  /// Relative paths are relative to `folder`.
  WeightFiles(ModuleOp module, StringRef folder)
      : module(module), folder(folder) {}

  /// Errors are on `user`.
  FailureOr<const WeightSource *> open(StringRef symbol, Operation *user);

private:
  ModuleOp module;
  std::string folder;
  llvm::StringMap<std::unique_ptr<WeightSource>> files;
};

/// A tensor as rows of bytes in its source format.
class TensorRows {
public:
  virtual ~TensorRows() = default;

  sprig::quant::Format format;
  size_t rows = 0, columns = 0;
  size_t rowBytes() const {
    return sprig::quant::info(format).rowBytes(columns);
  }

  /// Rows [first, first + count): a view of mapped bytes, or of `buffer`, which
  /// the call may fill.
  virtual std::span<const std::byte>
  read(size_t first, size_t count, std::vector<std::byte> &buffer) const = 0;
};

/// The rows of `value`: a weight of a source or inline, or slices and
/// concatenations of rows of such. Errors are on the operation that cannot be
/// read so.
FailureOr<std::unique_ptr<TensorRows>> openRows(Value value,
                                                WeightFiles &files);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_TENSORROWS_H
