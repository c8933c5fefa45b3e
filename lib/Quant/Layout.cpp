#include "lib/Quant/Layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace sprig::quant {
namespace {

size_t alignUp(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Copies `count` pieces of `bytes` bytes between two strides. A constant size
/// becomes plain moves.
template <size_t bytes>
void copyFixed(const std::byte *src, size_t srcStride, std::byte *dst,
               size_t dstStride, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(dst + i * dstStride, src + i * srcStride, bytes);
}

void copyStrided(const std::byte *src, size_t srcStride, std::byte *dst,
                 size_t dstStride, size_t bytes, size_t count) {
  switch (bytes) {
  case 2:
    return copyFixed<2>(src, srcStride, dst, dstStride, count);
  case 4:
    return copyFixed<4>(src, srcStride, dst, dstStride, count);
  case 8:
    return copyFixed<8>(src, srcStride, dst, dstStride, count);
  case 16:
    return copyFixed<16>(src, srcStride, dst, dstStride, count);
  case 32:
    return copyFixed<32>(src, srcStride, dst, dstStride, count);
  case 64:
    return copyFixed<64>(src, srcStride, dst, dstStride, count);
  case 128:
    return copyFixed<128>(src, srcStride, dst, dstStride, count);
  default:
    for (size_t i = 0; i < count; ++i)
      std::memcpy(dst + i * dstStride, src + i * srcStride, bytes);
  }
}

/// Bytes from unit to unit of a plane in a source row.
size_t sourceStride(const TensorLayout &layout, const PlaneLayout &plane) {
  const FormatInfo &format = info(layout.format);
  if (format.isPlanar)
    return plane.unitBytes;
  return layout.unitElements / format.blockElements * format.blockBytes;
}

/// Units of a row that are whole in the source; a plain row may end within a
/// unit.
size_t wholeUnits(const TensorLayout &layout, const PlaneLayout &plane) {
  return info(layout.format).isPlanar ? plane.units
                                      : layout.K / layout.unitElements;
}

} // namespace

const PlaneLayout *TensorLayout::plane(std::string_view name) const {
  for (const PlaneLayout &plane : planes)
    if (plane.name == name)
      return &plane;
  return nullptr;
}

TensorLayout describe(Format format, size_t N, size_t K, TiledLayout tiled) {
  const FormatInfo &row = info(format);
  assert(K % row.blockElements == 0 && "expects rows of whole blocks");
  assert(tiled.rows > 0);
  TensorLayout layout;
  layout.format = format;
  layout.rows = tiled.rows;
  layout.N = N;
  layout.K = K;
  layout.tiles = (N + tiled.rows - 1) / tiled.rows;
  layout.unitElements =
      row.isPlain() ? kPlainUnitBytes / row.blockBytes : row.blockElements;
  layout.units = (K + layout.unitElements - 1) / layout.unitElements;
  layout.rowBytes = row.rowBytes(K);
  size_t offset = 0, inRow = 0;
  for (const Plane &plane : row.planes) {
    const uint32_t unitBytes =
        row.isPlain() ? uint32_t(kPlainUnitBytes) : plane.bytes;
    const size_t units = plane.pieces(layout.units);
    const size_t bytes = layout.tiles * units * layout.rows * unitBytes;
    layout.planes.push_back({plane.name, offset, bytes,
                             row.isPlanar ? inRow : plane.offset, unitBytes,
                             units, plane.share});
    offset += alignUp(bytes, kPlaneAlignment);
    inRow += units * unitBytes;
  }
  layout.bytes = offset;
  return layout;
}

void relayoutPlane(const TensorLayout &layout, const PlaneLayout &plane,
                   const std::byte *src, size_t firstRow, size_t rowCount,
                   std::byte *dst) {
  assert(firstRow % layout.rows == 0);
  assert(firstRow + rowCount == layout.N || rowCount % layout.rows == 0);
  const size_t lanesBytes = size_t(layout.rows) * plane.unitBytes;
  const size_t stride = sourceStride(layout, plane),
               whole = wholeUnits(layout, plane);
  for (size_t row = 0; row < rowCount; ++row) {
    const std::byte *from = src + row * layout.rowBytes + plane.sourceOffset;
    std::byte *to = dst + row / layout.rows * plane.units * lanesBytes +
                    row % layout.rows * plane.unitBytes;
    copyStrided(from, stride, to, lanesBytes, plane.unitBytes, whole);
    if (whole != plane.units) { // the end of a plain row
      const size_t rest = layout.rowBytes - whole * stride;
      std::byte *last = to + whole * lanesBytes;
      std::memset(last, 0, plane.unitBytes);
      std::memcpy(last, from + whole * stride, rest);
    }
  }
  // Rows past N in the last tile.
  for (size_t row = rowCount; row % layout.rows != 0; ++row) {
    std::byte *to = dst + row / layout.rows * plane.units * lanesBytes +
                    row % layout.rows * plane.unitBytes;
    for (size_t unit = 0; unit < plane.units; ++unit)
      std::memset(to + unit * lanesBytes, 0, plane.unitBytes);
  }
}

void relayoutRows(const TensorLayout &layout, const std::byte *src,
                  size_t firstRow, size_t rowCount, std::byte *dst) {
  for (const PlaneLayout &plane : layout.planes)
    relayoutPlane(layout, plane, src, firstRow, rowCount,
                  dst + layout.offsetOf(plane, firstRow, 0));
}

void unlayoutRows(const TensorLayout &layout, const std::byte *src,
                  size_t firstRow, size_t rowCount, std::byte *dst) {
  assert(firstRow + rowCount <= layout.N);
  for (const PlaneLayout &plane : layout.planes) {
    const size_t stride = sourceStride(layout, plane),
                 whole = wholeUnits(layout, plane);
    const size_t lanesBytes = size_t(layout.rows) * plane.unitBytes;
    for (size_t row = 0; row < rowCount; ++row) {
      const std::byte *from = src + layout.offsetOf(plane, firstRow + row, 0);
      std::byte *to = dst + row * layout.rowBytes + plane.sourceOffset;
      copyStrided(from, lanesBytes, to, stride, plane.unitBytes, whole);
      if (whole != plane.units)
        std::memcpy(to + whole * stride, from + whole * lanesBytes,
                    layout.rowBytes - whole * stride);
    }
  }
}

void relayout(const TensorLayout &layout, const std::byte *src,
              std::byte *dst) {
  relayoutRows(layout, src, 0, layout.N, dst);
  for (const PlaneLayout &plane : layout.planes) {
    const size_t end = plane.offset + plane.bytes;
    std::memset(dst + end, 0, alignUp(end, kPlaneAlignment) - end);
  }
}

void unlayout(const TensorLayout &layout, const std::byte *src,
              std::byte *dst) {
  unlayoutRows(layout, src, 0, layout.N, dst);
}

} // namespace sprig::quant
