#include "codegen/Package/TensorWriter.h"

#include "codegen/Lowering/WeightLayout.h"

namespace mlir::llm {

using namespace sprig;

/// Source bytes that are laid out at a time.
static constexpr size_t kPieceBytes = 1u << 20;

/// Rows of a piece: whole tiles.
static size_t pieceRows(const TensorRows &rows, size_t tile) {
  return std::max<size_t>(1, kPieceBytes /
                                 std::max<size_t>(1, rows.rowBytes() * tile)) *
         tile;
}

/// Plane after plane: each is one pass over the rows, so that the section is
/// written from front to back.
static llvm::Error writeTiled(const TensorRows &rows, uint32_t tile,
                              SectionStream &section) {
  quant::TensorLayout layout =
      quant::describe(rows.format, rows.rows, rows.columns, {tile});
  const uint64_t base = section.offset();
  std::vector<std::byte> source, piece;
  for (const quant::PlaneLayout &plane : layout.planes) {
    if (llvm::Error error = section.padTo(base + plane.offset))
      return error;
    const size_t step = pieceRows(rows, tile);
    for (size_t first = 0; first < rows.rows; first += step) {
      size_t count = std::min(step, rows.rows - first);
      piece.resize((count + tile - 1) / tile * layout.tileBytes(plane));
      quant::relayoutPlane(layout, plane,
                           rows.read(first, count, source).data(), first, count,
                           piece.data());
      if (llvm::Error error = section.append(piece))
        return error;
    }
  }
  return section.padTo(base + layout.bytes);
}

static llvm::Error writeF32(const TensorRows &rows, SectionStream &section) {
  std::vector<std::byte> source;
  std::vector<float> numbers;
  const size_t step = pieceRows(rows, 1);
  for (size_t first = 0; first < rows.rows; first += step) {
    size_t count = std::min(step, rows.rows - first);
    numbers.resize(count * rows.columns);
    quant::decode(rows.format, rows.read(first, count, source).data(),
                  numbers.data(), numbers.size());
    if (llvm::Error error = section.append(std::as_bytes(std::span(numbers))))
      return error;
  }
  return llvm::Error::success();
}

LogicalResult writeTensor(plan::TensorOp tensor, WeightFiles &files,
                          SectionStream &section) {
  FailureOr<std::unique_ptr<TensorRows>> rows =
      openRows(tensor.getBody().front().getTerminator()->getOperand(0), files);
  if (failed(rows))
    return failure();
  llvm::Error error = section.padTo(*tensor.getOffset());
  if (!error)
    error =
        tensor.getLayout() == kLayoutF32
            ? writeF32(**rows, section)
            : writeTiled(**rows, *tiledLayoutRows(tensor.getLayout()), section);
  if (error)
    return tensor.emitOpError() << llvm::toString(std::move(error));
  if (section.offset() != *tensor.getOffset() + tensor.getBytes())
    return tensor.emitOpError("expects ")
           << tensor.getBytes() << " bytes, but its layout has "
           << section.offset() - *tensor.getOffset();
  return success();
}

} // namespace mlir::llm
