#include "codegen/Lowering/WeightLayout.h"

#include "lib/Weights/WeightTypes.h"

namespace mlir::llm {

std::string tiledLayoutName(uint32_t rows) {
  return "tiled<rows=" + std::to_string(rows) + ">";
}

std::optional<uint32_t> tiledLayoutRows(StringRef layout) {
  uint32_t rows = 0;
  if (layout.consume_front("tiled<rows=") && layout.consume_back(">") &&
      !layout.getAsInteger(10, rows) && rows > 0)
    return rows;
  return std::nullopt;
}

FailureOr<sprig::quant::TensorLayout>
tiledLayout(RankedTensorType type, uint32_t rows,
            llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::optional<sprig::quant::Format> format = deviceFormatOf(type);
  if (!format)
    return emitError()
           << "expects a weight in one of the block formats of GGUF, or in "
              "groups with one scale, but got "
           << type << "; quantise it to one, or dequantise it";
  int64_t K = type.getRank() ? type.getShape().back() : 1;
  uint32_t block = sprig::quant::info(*format).blockElements;
  if (!type.hasStaticShape() || K % block != 0)
    return emitError() << "expects rows of whole blocks of " << block
                       << " numbers, but got " << type;
  return sprig::quant::describe(*format, size_t(type.getNumElements() / K),
                                size_t(K), {rows});
}

FailureOr<uint64_t>
layoutBytes(RankedTensorType type, StringRef layout,
            llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (layout == kLayoutF32)
    return uint64_t(type.getNumElements()) * 4;
  std::optional<uint32_t> rows = tiledLayoutRows(layout);
  if (!rows)
    return emitError() << "expects a layout 'f32' or 'tiled<rows=R>', but got '"
                       << layout << "'";
  FailureOr<sprig::quant::TensorLayout> tiled =
      tiledLayout(type, *rows, emitError);
  if (failed(tiled))
    return failure();
  return uint64_t(tiled->bytes);
}

} // namespace mlir::llm
