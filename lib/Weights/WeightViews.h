// The views that weight expressions are made of. Public only to the files that
// open expressions.
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTVIEWS_H
#define SPRIG_LIB_WEIGHTS_WEIGHTVIEWS_H

#include "lib/Weights/WeightExpr.h"

namespace mlir::llm::weights {

using Expr = std::unique_ptr<WeightExpr>;
using sprig::quant::Format;

/// Bytes in memory: mapped ones of `source`, or bytes of its own.
Expr memory(Format format, ArrayRef<int64_t> shape,
            std::span<const std::byte> data, const WeightSource *source);
Expr memory(Format format, ArrayRef<int64_t> shape,
            std::vector<std::byte> owned);

/// Rows of other expressions, in any order.
struct RowRun {
  size_t input;
  int64_t first, count;
};
Expr pickRows(std::vector<Expr> inputs, ArrayRef<int64_t> shape,
              std::vector<RowRun> runs);

/// Columns [begin, end) of every row.
Expr sliceColumns(Expr input, int64_t begin, int64_t end);
/// Rows joined end to end.
Expr concatColumns(std::vector<Expr> inputs);
/// Chosen columns of every row; a quantised input is decoded.
Expr gatherColumns(Expr input, ArrayRef<int64_t> index);

/// The same elements in row-major order under another shape.
Expr reshape(Expr input, ArrayRef<int64_t> shape);
/// Dimensions in another order, of plain numbers; the whole tensor comes into
/// memory on the first read.
Expr transposeElements(Expr input, ArrayRef<int64_t> order);

/// Numbers in a float format.
Expr convert(Expr input, Format format);
/// Each slice along `axis` times its factor.
Expr scale(Expr input, std::vector<double> factors, int64_t axis,
           Format format);

/// Every number plus a constant, in f32.
Expr offset(Expr input, double amount);

/// Every row divided by sqrt(sum of its squares / count + epsilon).
Expr normalise(Expr input, double count, double epsilon, Format format);

/// The Walsh-Hadamard transform of blocks of each row, as `llm.hadamard` has it;
/// `signs` has a number for each column, or none.
Expr hadamard(Expr input, int64_t block, std::vector<double> signs,
              bool inverse, Format format);

} // namespace mlir::llm::weights

#endif // SPRIG_LIB_WEIGHTS_WEIGHTVIEWS_H
