// What becomes of a file's matrix on its way to a product, followed backwards, so that an adapter's factors can take the
// same way.
#ifndef SPRIG_LIB_IMPORT_ADAPTERROWS_H
#define SPRIG_LIB_IMPORT_ADAPTERROWS_H

#include "dialects/LLM/LLM.h"

namespace mlir::llm {

/// The one matrix of a file that all rows of a weight are from.
struct FileMatrix {
  std::string name; ///< of the module: without `.weight`, `.qweight` and the like
  int64_t rows = 0; ///< that the file has
  /// The weight's columns are the file's in this order, as the product's input has them; null: in the file's.
  Value order;
};

/// None where a weight is made of more than rows of one matrix.
std::optional<FileMatrix> fileMatrixOf(Value weight);

/// Rows of `matrix`, which has one for each row of the file's, chosen and ordered as `weight`'s are. `weight` has a
/// fileMatrixOf().
Value rowsLike(OpBuilder &builder, Location loc, Value weight, Value matrix);

/// The matrices of the experts of a weight `XxNxK`, one each, or none where it is not stacked from such.
SmallVector<Value> matricesOfExperts(Value weight);

/// What adapters may call the product that the file's matrix `name` is for, likeliest first. They speak of a model as
/// Hugging Face's software has it, so names of GGUF files are translated, and a bare model's begin with its root.
SmallVector<std::string> adapterNames(StringRef name, StringRef architecture);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_ADAPTERROWS_H
