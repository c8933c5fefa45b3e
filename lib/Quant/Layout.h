// How a weight lies in the package and on the device, when it no longer lies as
// in its source file.
//
// Tiled layout: `rows` neighbouring rows form a tile, so that `rows`
// invocations read one row each, side by side. Each plane of the format
// (Format.h) is stored on its own:
//
//   plane p:  [ceil(N / rows)] [units of a row] [rows] [unit bytes of p]
//
// A unit is one block; for plain formats it is kPlainUnitBytes of neighbouring
// elements of a row (4 f32, 8 f16), so that an invocation loads whole vectors.
// Where units share bytes of a plane (the scale of a group of several units),
// the plane has as many fewer.
//
// Pieces of a plane that are smaller than a load should be (scales, high
// bits, patterns, zero points) lie `run` neighbours of a row side by side, so
// that one load fetches those of a whole span of units:
//
//   plane p:  [ceil(N / rows)] [ceil(pieces of a row / run)] [rows] [run] [unit
//   bytes of p]
//
// Rows past N, elements past K and pieces past the last are zero bytes. Planes
// start at multiples of kPlaneAlignment; the last plane is padded to it, so
// tensors can follow each other. With rows = 1 a plain tensor whose rows are
// whole units (or that has one row) keeps its bytes unchanged: the layout of
// vectors.
//
// It is a permutation of bytes and the padding is known: unlayoutRows gives
// back the source exactly.
#ifndef SPRIG_LIB_QUANT_LAYOUT_H
#define SPRIG_LIB_QUANT_LAYOUT_H

#include "lib/Quant/Format.h"

#include <vector>

namespace sprig::quant {

/// Every plane starts at a multiple of this: the largest
/// minStorageBufferOffsetAlignment that Vulkan allows.
inline constexpr size_t kPlaneAlignment = 256;
/// Bytes of a unit of a plain format: one 128-bit load.
inline constexpr size_t kPlainUnitBytes = 16;

struct TiledLayout {
  uint32_t rows = 8;
};

/// Where one plane of a tensor lies.
struct PlaneLayout {
  std::string_view name;
  size_t offset;        ///< of the plane in the tensor, in bytes
  size_t bytes;         ///< of all tiles, without padding to kPlaneAlignment
  size_t sourceOffset;  ///< of the plane's first bytes in a source row
  uint32_t unitBytes;   ///< bytes of a unit in this plane
  size_t pieces;        ///< of a row in this plane; fewer than the tensor's
                        ///< units where some share their bytes
  size_t units;         ///< the same, up to a multiple of `run`
  uint32_t share = 1;   ///< units of the tensor to one of the plane; 0: all
  uint32_t run = 1;     ///< neighbours that lie side by side
};

/// The layout of one [N, K] tensor.
struct TensorLayout {
  Format format;
  uint32_t rows;       ///< of a tile
  size_t N, K;         ///< logical shape
  size_t tiles;        ///< ceil(N / rows)
  size_t units;        ///< of a row
  size_t unitElements; ///< numbers in a unit
  uint32_t span;       ///< units whose small pieces one load of each plane
                       ///< fetches: 1, 2 or 4; spans start at multiples of it
  size_t rowBytes;     ///< of a source row
  size_t bytes;        ///< of the tensor, a multiple of kPlaneAlignment
  std::vector<PlaneLayout> planes;

  size_t tileBytes(const PlaneLayout &plane) const {
    return plane.units * rows * plane.unitBytes;
  }
  /// Byte offset, within the tensor, of the bytes that are piece `unit` of
  /// `plane` in row `row`.
  size_t offsetOf(const PlaneLayout &plane, size_t row, size_t unit) const {
    return plane.offset + row / rows * tileBytes(plane) +
           ((unit / plane.run * rows + row % rows) * plane.run +
            unit % plane.run) *
               plane.unitBytes;
  }
  /// The plane of that name, or null.
  const PlaneLayout *plane(std::string_view name) const;
};

/// Describes the layout of an [N, K] tensor; `K` is a multiple of the format's
/// block.
TensorLayout describe(Format format, size_t N, size_t K,
                      TiledLayout layout = {});

/// Writes the rows [firstRow, firstRow + rowCount), given as in the source file
/// from `src` on, to their places in the tensor at `dst` (layout.bytes long),
/// and zeroes what padding belongs to them. Both ends of the range are
/// multiples of layout.rows, or N. Planes' alignment gaps are not touched.
void relayoutRows(const TensorLayout &layout, const std::byte *src,
                  size_t firstRow, size_t rowCount, std::byte *dst);

/// The same for one plane, written from `dst` on: consecutive calls over
/// consecutive row ranges write the plane from first to last byte, so a file
/// can be written in order without the tensor in memory.
void relayoutPlane(const TensorLayout &layout, const PlaneLayout &plane,
                   const std::byte *src, size_t firstRow, size_t rowCount,
                   std::byte *dst);

/// Inverse of relayoutRows: any row range, from the whole tensor at `src` to
/// `rowCount` source rows at `dst`.
void unlayoutRows(const TensorLayout &layout, const std::byte *src,
                  size_t firstRow, size_t rowCount, std::byte *dst);

/// A whole tensor; `dst` is layout.bytes long and wholly written (gaps and
/// padding are zero).
void relayout(const TensorLayout &layout, const std::byte *src, std::byte *dst);
/// Inverse of relayout; `dst` holds N * rowBytes.
void unlayout(const TensorLayout &layout, const std::byte *src, std::byte *dst);

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_LAYOUT_H
