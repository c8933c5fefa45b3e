// Weight expressions, evaluated row by row.
//
// A value built from `llm.weight` by slice, concat, gather, transpose, reshape,
// scale_axis, offset, dequantize, relayout and assemble is opened as a tree of
// views.
// Opening checks all of it; reading then cannot fail. Numbers come into memory
// as rows are asked for, so a tensor of any size can be streamed.
//
// Cuts and joins of a quantised tensor along rows, and along columns at whole
// blocks, keep its bytes. Everything else has new numbers: computed in f64,
// stored in the declared float type, or in f32 where a quantised result would
// need new codes (the format of the expression tells).
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTEXPR_H
#define SPRIG_LIB_WEIGHTS_WEIGHTEXPR_H

#include "dialects/LLM/LLM.h"
#include "lib/Quant/Layout.h"
#include "lib/Weights/WeightStore.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::llm {

class WeightExpr {
public:
  virtual ~WeightExpr() = default;

  /// How the bytes of read() are to be understood.
  sprig::quant::Format format() const { return storedFormat; }
  ArrayRef<int64_t> shape() const { return sizes; }
  /// All dimensions but the last, multiplied; and the last.
  int64_t rows() const { return rowCount; }
  int64_t columns() const { return sizes.empty() ? 1 : sizes.back(); }
  size_t rowBytes() const {
    return sprig::quant::info(storedFormat).rowBytes(size_t(columns()));
  }

  /// Rows [first, first + count), one after another: a view of mapped memory
  /// where they lie so in a file, else of `buffer`, which is then overwritten.
  /// Safe from several threads, each with a buffer of its own.
  virtual std::span<const std::byte>
  read(int64_t first, int64_t count, std::vector<std::byte> &buffer) const = 0;

  /// The same rows as numbers: `count * columns()` of them.
  void decode(int64_t first, int64_t count, float *numbers) const;
  void decode(int64_t first, int64_t count, double *numbers) const;

  /// These rows will not be read again soon: their pages may go.
  virtual void release(int64_t first, int64_t count) const {}

protected:
  WeightExpr(sprig::quant::Format format, ArrayRef<int64_t> shape);

private:
  sprig::quant::Format storedFormat;
  SmallVector<int64_t, 4> sizes;
  int64_t rowCount = 1;
};

/// Whether a value depends on weights and constants alone, through operations
/// that can be evaluated here.
bool isWeightExpr(Value value);

/// Opens an expression; errors are on the operation that cannot be evaluated.
/// The store has to outlive it.
FailureOr<std::unique_ptr<WeightExpr>> openWeightExpr(Value value,
                                                      WeightStore &store);

/// All numbers of an integer expression, such as the index of a gather.
FailureOr<SmallVector<int64_t>> readIntegers(Value value, WeightStore &store);

/// Streams an expression in a tiled layout (lib/Quant/Layout.h) that was
/// described for its format, rows and columns: `append` gets layout.bytes bytes
/// in order. About `chunkBytes` of the source are in memory at a time.
llvm::Error
streamTiled(const WeightExpr &weight, const sprig::quant::TensorLayout &layout,
            llvm::function_ref<llvm::Error(std::span<const std::byte>)> append,
            size_t chunkBytes = size_t(4) << 20);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_WEIGHTEXPR_H
