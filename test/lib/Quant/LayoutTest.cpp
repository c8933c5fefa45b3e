#include "lib/Quant/Layout.h"

#include <gtest/gtest.h>

#include <random>

using namespace sprig::quant;

namespace {

std::vector<std::byte> randomBytes(size_t count) {
  std::mt19937 random(uint32_t(count) + 1);
  std::vector<std::byte> bytes(count);
  for (std::byte &byte : bytes)
    byte = std::byte(random());
  return bytes;
}

/// unlayout(relayout(x)) == x for every format, with tails of rows, and of
/// elements where the format allows it.
TEST(LayoutTest, RoundTripsEveryFormat) {
  for (const FormatInfo &row : formats())
    for (uint32_t rows : {1u, 8u, 32u})
      for (size_t N : {1u, 7u, 8u, 9u, 33u})
        for (size_t K :
             {size_t(row.blockElements), size_t(3 * row.blockElements),
              size_t(5 * row.blockElements)}) {
          SCOPED_TRACE(testing::Message()
                       << row.name << " " << N << "x" << K << " rows " << rows);
          const TensorLayout layout = describe(row.format, N, K, {rows});
          ASSERT_EQ(layout.bytes % kPlaneAlignment, 0u);
          const auto source = randomBytes(N * layout.rowBytes);
          std::vector<std::byte> tiled(layout.bytes, std::byte(0xee)),
              back(source.size());
          relayout(layout, source.data(), tiled.data());
          unlayout(layout, tiled.data(), back.data());
          ASSERT_EQ(back, source);
        }
}

/// Tile by tile and plane by plane, the same bytes as at once.
TEST(LayoutTest, RangesOfRowsAndPlanesMakeTheSameBytes) {
  for (const FormatInfo &row : formats()) {
    SCOPED_TRACE(row.name);
    const size_t N = 21, K = 2 * row.blockElements;
    const TensorLayout layout = describe(row.format, N, K);
    const auto source = randomBytes(N * layout.rowBytes);
    std::vector<std::byte> whole(layout.bytes), byRows(layout.bytes),
        byPlanes(layout.bytes);
    relayout(layout, source.data(), whole.data());
    for (size_t first = 0; first < N; first += 8)
      relayoutRows(layout, source.data() + first * layout.rowBytes, first,
                   std::min<size_t>(8, N - first), byRows.data());
    EXPECT_EQ(byRows, whole);
    for (const PlaneLayout &plane : layout.planes) {
      std::byte *at = byPlanes.data() + plane.offset;
      for (size_t first = 0; first < N; first += 16) {
        const size_t count = std::min<size_t>(16, N - first);
        relayoutPlane(layout, plane, source.data() + first * layout.rowBytes,
                      first, count, at);
        at += (count + 7) / 8 * layout.tileBytes(plane);
      }
      EXPECT_EQ(at, byPlanes.data() + plane.offset + plane.bytes);
    }
    EXPECT_EQ(byPlanes, whole);

    std::vector<std::byte> rows(5 * layout.rowBytes);
    unlayoutRows(layout, whole.data(), 13, 5, rows.data());
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(),
                           source.begin() + 13 * layout.rowBytes));
  }
}

/// The placement that kernels compute: [tile][block][row of the tile][bytes of
/// the plane], and of scales [tile][two blocks][row of the tile][block][bytes].
TEST(LayoutTest, PlacesQ4_1AsDocumented) {
  const size_t N = 10, K = 64;
  const TensorLayout layout = describe(Format::Q4_1, N, K);
  ASSERT_EQ(layout.planes.size(), 2u);
  const PlaneLayout &scales = *layout.plane("scales"),
                    &codes = *layout.plane("codes");
  EXPECT_EQ(scales.offset, 0u);
  EXPECT_EQ(scales.bytes, 2 * 2 * 8 * 4u);
  EXPECT_EQ(codes.offset, 256u);
  EXPECT_EQ(codes.bytes, 2 * 2 * 8 * 16u);
  EXPECT_EQ(layout.bytes, 256 + 512u);
  EXPECT_EQ(layout.offsetOf(codes, 9, 1), 256 + ((1 * 2 + 1) * 8 + 1) * 16u);
  EXPECT_EQ(layout.span, 2u);
  EXPECT_EQ(layout.offsetOf(scales, 9, 1), ((1 * 1 * 8 + 1) * 2 + 1) * 4u);

  const auto source = randomBytes(N * layout.rowBytes);
  std::vector<std::byte> tiled(layout.bytes, std::byte(0xee));
  relayout(layout, source.data(), tiled.data());
  for (size_t row = 0; row < N; ++row)
    for (size_t block = 0; block < 2; ++block) {
      const std::byte *from =
          source.data() + row * layout.rowBytes + 20 * block;
      EXPECT_TRUE(std::equal(
          from, from + 4, tiled.data() + layout.offsetOf(scales, row, block)));
      EXPECT_TRUE(
          std::equal(from + 4, from + 20,
                     tiled.data() + layout.offsetOf(codes, row, block)));
    }
  // Rows 10-15 do not exist: zero.
  for (size_t row = N; row < 16; ++row)
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(tiled[layout.offsetOf(codes, row, 1) + i], std::byte(0));
}

TEST(LayoutTest, PlainFormatsTileBy16Bytes) {
  const TensorLayout layout = describe(Format::F16, 3, 20);
  EXPECT_EQ(layout.unitElements, 8u);
  EXPECT_EQ(layout.units, 3u);
  const auto source = randomBytes(3 * 40);
  std::vector<std::byte> tiled(layout.bytes);
  relayout(layout, source.data(), tiled.data());
  const std::byte *last =
      tiled.data() + layout.offsetOf(layout.planes[0], 2, 2);
  EXPECT_TRUE(std::equal(last, last + 8, source.end() - 8));
  for (size_t i = 8; i < 16; ++i)
    EXPECT_EQ(last[i], std::byte(0)) << "elements past K";
}

/// A vector keeps its bytes.
TEST(LayoutTest, OneRowIsTheIdentity) {
  const TensorLayout layout = describe(Format::F32, 1, 577, {1});
  const auto source = randomBytes(577 * 4);
  std::vector<std::byte> tiled(layout.bytes);
  relayout(layout, source.data(), tiled.data());
  EXPECT_TRUE(std::equal(source.begin(), source.end(), tiled.begin()));
  EXPECT_EQ(layout.bytes, 2560u);
}

} // namespace
