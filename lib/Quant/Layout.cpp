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
  return info(layout.format).isPlanar ? plane.pieces
                                      : layout.K / layout.unitElements;
}

/// Blocks whose scales are worth loading several of at once are small ones.
constexpr uint32_t kSpanElements = 64;

/// As many units as make a load of 8 bytes of scales of 2 or 4 bytes; where
/// units share scales, those that do, at most four.
uint32_t spanOf(const FormatInfo &format) {
  if (format.isPlain() || format.blockElements > kSpanElements)
    return 1;
  uint32_t small = 0, shared = 4;
  bool shares = false;
  for (const Plane &plane : format.planes) {
    shares |= plane.share != 1;
    if (plane.share == 1 && plane.bytes < 8)
      small = std::max(small, plane.bytes == 2   ? 4u
                              : plane.bytes == 4 ? 2u
                                                 : 1u);
    if (plane.share > 1)
      shared = std::min(shared, plane.share & (~plane.share + 1));
  }
  return small ? small : shares ? shared : 1;
}

/// Pieces of a plane that lie side by side.
uint32_t runOf(const Plane &plane, uint32_t span) {
  const bool whole =
      plane.share && plane.share < span && span % plane.share == 0;
  return whole && plane.bytes < 8 ? span / plane.share : 1;
}

/// Calls copy(first piece, offset of it in the row's tile, stride there, count)
/// for the pieces of a row that have the same place in their run.
template <typename Copy>
void eachPlaceInRun(const PlaneLayout &plane, size_t rows, size_t count,
                    Copy copy) {
  const size_t stride = rows * plane.run * plane.unitBytes;
  for (size_t i = 0; i < plane.run && i < count; ++i)
    copy(i, i * plane.unitBytes, stride,
         (count - i + plane.run - 1) / plane.run);
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
  layout.span = spanOf(row);
  size_t offset = 0, inRow = 0;
  for (const Plane &plane : row.planes) {
    const uint32_t unitBytes =
        row.isPlain() ? uint32_t(kPlainUnitBytes) : plane.bytes;
    const uint32_t run = row.isPlain() ? 1 : runOf(plane, layout.span);
    const size_t pieces = plane.pieces(layout.units),
                 units = alignUp(pieces, run);
    const size_t bytes = layout.tiles * units * layout.rows * unitBytes;
    layout.planes.push_back({plane.name, offset, bytes,
                             row.isPlanar ? inRow : plane.offset, unitBytes,
                             pieces, units, plane.share, run});
    offset += alignUp(bytes, kPlaneAlignment);
    inRow += pieces * unitBytes;
  }
  layout.bytes = offset;
  return layout;
}

void relayoutPlane(const TensorLayout &layout, const PlaneLayout &plane,
                   const std::byte *src, size_t firstRow, size_t rowCount,
                   std::byte *dst) {
  assert(firstRow % layout.rows == 0);
  assert(firstRow + rowCount == layout.N || rowCount % layout.rows == 0);
  const size_t stride = sourceStride(layout, plane),
               whole = wholeUnits(layout, plane);
  const size_t tileBytes = layout.tileBytes(plane),
               runBytes = size_t(plane.run) * plane.unitBytes;
  const auto placeOf = [&](size_t row) {
    return dst + row / layout.rows * tileBytes + row % layout.rows * runBytes;
  };
  // To the end of the row's last run.
  const auto zero = [&](std::byte *to, size_t first) {
    for (size_t piece = first; piece < plane.units; ++piece)
      std::memset(to + piece / plane.run * layout.rows * runBytes +
                      piece % plane.run * plane.unitBytes,
                  0, plane.unitBytes);
  };
  for (size_t row = 0; row < rowCount; ++row) {
    const std::byte *from = src + row * layout.rowBytes + plane.sourceOffset;
    std::byte *to = placeOf(row);
    eachPlaceInRun(plane, layout.rows, whole,
                   [&](size_t first, size_t offset, size_t run, size_t count) {
                     copyStrided(from + first * stride, stride * plane.run,
                                 to + offset, run, plane.unitBytes, count);
                   });
    zero(to, whole);
    if (whole != plane.pieces) // the end of a plain row
      std::memcpy(to + whole * layout.rows * runBytes, from + whole * stride,
                  layout.rowBytes - whole * stride);
  }
  // Rows past N in the last tile.
  for (size_t row = rowCount; row % layout.rows != 0; ++row)
    zero(placeOf(row), 0);
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
    for (size_t row = 0; row < rowCount; ++row) {
      const std::byte *from = src + layout.offsetOf(plane, firstRow + row, 0);
      std::byte *to = dst + row * layout.rowBytes + plane.sourceOffset;
      eachPlaceInRun(
          plane, layout.rows, whole,
          [&](size_t first, size_t offset, size_t run, size_t count) {
            copyStrided(from + offset, run, to + first * stride,
                        stride * plane.run, plane.unitBytes, count);
          });
      if (whole != plane.pieces)
        std::memcpy(to + whole * stride,
                    src + layout.offsetOf(plane, firstRow + row, whole),
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
