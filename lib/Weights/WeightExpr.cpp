#include "lib/Weights/WeightExpr.h"
#include "lib/Quant/Half.h"

#include <algorithm>

namespace mlir::llm {

namespace quant = sprig::quant;
using quant::Format;

WeightExpr::WeightExpr(Format format, ArrayRef<int64_t> shape)
    : storedFormat(format), sizes(shape) {
  if (!shape.empty())
    for (int64_t size : shape.drop_back())
      rowCount *= size;
}

void WeightExpr::decode(int64_t first, int64_t count, float *numbers) const {
  std::vector<std::byte> buffer;
  const auto bytes = read(first, count, buffer);
  // Blocks go on from row to row; a planar row stands alone.
  const int64_t step = quant::info(storedFormat).isPlanar ? 1 : count;
  for (int64_t row = 0; row < count; row += step)
    quant::decode(storedFormat, bytes.data() + size_t(row) * rowBytes(),
                  numbers + row * columns(), size_t(step * columns()));
}

template <typename T>
static void widen(std::span<const std::byte> bytes, double *numbers) {
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    numbers[i] = double(quant::load<T>(bytes.data() + i * sizeof(T)));
}

void WeightExpr::decode(int64_t first, int64_t count, double *numbers) const {
  std::vector<std::byte> buffer;
  const auto bytes = read(first, count, buffer);
  switch (storedFormat) { // what f32 cannot hold
  case Format::F64:
    return widen<double>(bytes, numbers);
  case Format::I32:
    return widen<int32_t>(bytes, numbers);
  case Format::U32:
    return widen<uint32_t>(bytes, numbers);
  case Format::I64:
    return widen<int64_t>(bytes, numbers);
  case Format::U64:
    return widen<uint64_t>(bytes, numbers);
  default:
    break;
  }
  // A row at a time, so that the f32 numbers stay in the cache.
  const size_t width = size_t(columns());
  std::vector<float> row(width);
  for (size_t i = 0; i < size_t(count); ++i) {
    quant::decode(storedFormat, bytes.data() + i * rowBytes(), row.data(),
                  width);
    std::copy(row.begin(), row.end(), numbers + i * width);
  }
}

llvm::Error
streamTiled(const WeightExpr &weight, const quant::TensorLayout &layout,
            llvm::function_ref<llvm::Error(std::span<const std::byte>)> append,
            size_t chunkBytes) {
  static constexpr std::byte kZeros[quant::kPlaneAlignment] = {};
  const size_t tile = layout.rows;
  // Whole tiles at a time, at least one.
  const size_t step =
      std::max<size_t>(1, chunkBytes / (tile * layout.rowBytes)) * tile;
  std::vector<std::byte> buffer, tiled;
  for (const quant::PlaneLayout &plane : layout.planes) {
    for (size_t first = 0; first < layout.N; first += step) {
      const size_t count = std::min(step, layout.N - first);
      const auto rows = weight.read(int64_t(first), int64_t(count), buffer);
      tiled.resize((count + tile - 1) / tile * layout.tileBytes(plane));
      quant::relayoutPlane(layout, plane, rows.data(), first, count,
                           tiled.data());
      if (llvm::Error error = append(tiled))
        return error;
      if (&plane == &layout.planes.back())
        weight.release(int64_t(first), int64_t(count));
    }
    const size_t gap =
        (quant::kPlaneAlignment - plane.bytes % quant::kPlaneAlignment) %
        quant::kPlaneAlignment;
    if (llvm::Error error = append(std::span(kZeros, gap)))
      return error;
  }
  return llvm::Error::success();
}

} // namespace mlir::llm
