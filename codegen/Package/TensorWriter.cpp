#include "codegen/Package/TensorWriter.h"

#include "codegen/Lowering/WeightLayout.h"
#include "lib/Weights/WeightExpr.h"

namespace mlir::llm {

using namespace sprig;

static llvm::Error writeF32(const WeightExpr &weight, SectionStream &section) {
  constexpr int64_t kPiece = 1 << 18; // numbers at a time
  const int64_t step = std::max<int64_t>(1, kPiece / weight.columns());
  std::vector<float> numbers;
  for (int64_t first = 0; first < weight.rows(); first += step) {
    int64_t count = std::min(step, weight.rows() - first);
    numbers.resize(size_t(count * weight.columns()));
    weight.decode(first, count, numbers.data());
    if (llvm::Error error = section.append(std::as_bytes(std::span(numbers))))
      return error;
  }
  return llvm::Error::success();
}

LogicalResult writeTensor(plan::TensorOp tensor, WeightStore &store,
                          SectionStream &section) {
  FailureOr<std::unique_ptr<WeightExpr>> weight = openWeightExpr(
      tensor.getBody().front().getTerminator()->getOperand(0), store);
  if (failed(weight))
    return failure();
  llvm::Error error = section.padTo(*tensor.getOffset());
  if (!error && tensor.getLayout() == kLayoutF32) {
    error = writeF32(**weight, section);
  } else if (!error) {
    std::optional<uint32_t> rows = tiledLayoutRows(tensor.getLayout());
    if (!rows)
      return tensor.emitOpError("expects a layout 'f32' or 'tiled<rows=R>', "
                                "but got '")
             << tensor.getLayout() << "'";
    quant::TensorLayout layout =
        quant::describe((*weight)->format(), size_t((*weight)->rows()),
                        size_t((*weight)->columns()), {*rows});
    error = streamTiled(**weight, layout, [&](std::span<const std::byte> bytes) {
      return section.append(bytes);
    });
  }
  if (error)
    return tensor.emitOpError() << llvm::toString(std::move(error));
  if (section.offset() != *tensor.getOffset() + tensor.getBytes())
    return tensor.emitOpError("expects ")
           << tensor.getBytes() << " bytes, but its layout has "
           << section.offset() - *tensor.getOffset();
  return success();
}

} // namespace mlir::llm
