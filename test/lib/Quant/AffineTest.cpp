#include "lib/Quant/Affine.h"
#include "lib/Quant/Half.h"
#include "lib/Quant/Layout.h"
#include "lib/Quant/Patterns.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

using namespace sprig::quant;
using Kind = AffineFormat::Kind;
using Scale = AffineFormat::Scale;

namespace {

std::vector<AffineFormat> all() {
  std::vector<AffineFormat> list;
  for (uint32_t bits : {2u, 3u, 4u, 5u, 6u, 8u})
    for (Kind kind : {Kind::Symmetric, Kind::Zero, Kind::Minimum})
      for (Scale scale : {Scale::F16, Scale::BF16, Scale::F32})
        for (uint32_t group : {0u, 32u, 64u, 128u, 4064u})
          list.push_back({bits, kind, scale, group});
  for (uint32_t among : {4u, 8u})
    for (uint32_t bits : {4u, 8u})
      for (Kind kind : {Kind::Symmetric, Kind::Zero})
        for (uint32_t group : {0u, 32u, 64u, 128u})
          list.push_back({bits, kind, Scale(group % 3), group, among});
  for (auto code : {AffineFormat::Code::E4M3, AffineFormat::Code::E5M2})
    for (Scale scale : {Scale::F16, Scale::BF16, Scale::F32})
      for (uint32_t group : {0u, 32u, 128u})
        list.push_back({8, Kind::Symmetric, scale, group, 0, code});
  return list;
}

/// Patterns of K numbers; all zero for dense formats.
std::vector<uint32_t> randomPatterns(const AffineFormat &affine, size_t K, std::mt19937 &random) {
  std::vector<uint32_t> patterns(K / 32);
  for (size_t k = 0; affine.among && k < K; k += affine.among) {
    const uint32_t ways = affine.among == 4 ? 6 : 70;
    patterns[k / 32] |= patternOfNumber(affine.kept(), affine.among, random() % ways) << k % 32;
  }
  return patterns;
}

TEST(AffineTest, NumbersAndNamesSpellTheParameters) {
  for (const AffineFormat &affine : all()) {
    const auto format = formatOf(affine);
    ASSERT_TRUE(format);
    const FormatInfo &row = info(*format);
    SCOPED_TRACE(row.name);
    EXPECT_EQ(affineOf(*format), affine);
    EXPECT_EQ(formatOfName(row.name), format);
    EXPECT_EQ(row.format, *format);
    EXPECT_TRUE(row.isPlanar);
  }
  EXPECT_EQ(info(*formatOf({4, Kind::Zero, Scale::F16, 64})).type, "<u4, 64:f16 zero u4>");
  EXPECT_EQ(info(*formatOf({3, Kind::Minimum, Scale::BF16, 0})).type, "<u3, *:bf16+bf16>");
  EXPECT_EQ(info(*formatOf({8, Kind::Symmetric, Scale::F32, 32})).name, "I8S_G32_F32");
  EXPECT_EQ(info(*formatOf({4, Kind::Symmetric, Scale::F16, 64, 4})).type, "<i4, 2:4, 64:f16>");
  EXPECT_EQ(info(*formatOf({8, Kind::Zero, Scale::F32, 0, 8})).name, "U8Z_4OF8_ROW_F32");
  EXPECT_EQ(info(*formatOf({8, Kind::Symmetric, Scale::F32, 128, 0, AffineFormat::Code::E4M3})).name, "F8E4M3_G128_F32");
  EXPECT_EQ(info(*formatOf({8, Kind::Symmetric, Scale::BF16, 0, 0, AffineFormat::Code::E5M2})).type, "<f8E5M2, *:bf16>");
  EXPECT_EQ(affineOf(Format::Q4_1), std::nullopt);
}

/// Every way to keep N of M has a number of its own, in lexical order.
TEST(AffineTest, PatternsAreNumbered) {
  for (auto [kept, of, ways] : {std::array{2u, 4u, 6u}, {4u, 8u, 70u}, {1u, 3u, 3u}}) {
    std::vector<std::vector<uint32_t>> places;
    for (uint32_t number = 0; number < ways; ++number) {
      const uint32_t mask = patternOfNumber(kept, of, number);
      EXPECT_EQ(uint32_t(std::popcount(mask)), kept);
      EXPECT_EQ(numberOfPattern(of, mask), number);
      std::vector<uint32_t> &list = places.emplace_back();
      for (uint32_t place = 0; place < of; ++place)
        if (mask >> place & 1)
          list.push_back(place);
    }
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  }
  EXPECT_EQ(patternOfNumber(2, 4, 7), 0b1100u); // no way has that number
}

/// The codes of a sparse unit have places of their own, within its bytes.
TEST(AffineTest, SurvivorsDoNotOverlap) {
  for (const AffineFormat &affine : all()) {
    if (!affine.among)
      continue;
    std::vector<bool> used(8 * affine.codeBytes());
    for (uint32_t index = 0; index < 32 / affine.among; ++index)
      for (uint32_t rank = 0; rank < affine.kept(); ++rank)
        for (uint32_t bit = 0; bit < affine.bits; ++bit) {
          const uint32_t at = survivorBit(affine, index, rank) + bit;
          ASSERT_LT(at, used.size());
          EXPECT_FALSE(used[at]);
          used[at] = true;
        }
    EXPECT_EQ(std::count(used.begin(), used.end(), true), ptrdiff_t(used.size()));
  }
}

TEST(AffineTest, OutOfReachIsNoFormat) {
  for (uint32_t bits : {0u, 1u, 7u, 9u, 16u})
    EXPECT_EQ(formatOf({bits, Kind::Symmetric, Scale::F16, 64}), std::nullopt) << bits;
  for (uint32_t group : {16u, 48u, 4096u})
    EXPECT_EQ(formatOf({4, Kind::Symmetric, Scale::F16, group}), std::nullopt) << group;
  EXPECT_EQ(formatOf({4, Kind::Symmetric, Scale::F16, 64, 16}), std::nullopt);
  EXPECT_EQ(formatOf({3, Kind::Symmetric, Scale::F16, 64, 4}), std::nullopt);
  EXPECT_EQ(formatOf({4, Kind::Minimum, Scale::F16, 64, 4}), std::nullopt);
  EXPECT_EQ(formatOf({4, Kind::Book, Scale::F16, 0, 4}), std::nullopt);
  EXPECT_EQ(formatOf({4, Kind::Symmetric, Scale::F16, 64, 0, AffineFormat::Code::E4M3}), std::nullopt);
  EXPECT_EQ(formatOf({8, Kind::Zero, Scale::F16, 64, 0, AffineFormat::Code::E4M3}), std::nullopt);
  EXPECT_EQ(formatOf({8, Kind::Symmetric, Scale::F16, 64, 4, AffineFormat::Code::E5M2}), std::nullopt);
  // Books are a row's, of f16, and of few entries.
  for (const AffineFormat &book : {AffineFormat{5, Kind::Book}, {4, Kind::Book, Scale::F32}, {4, Kind::Book, Scale::F16, 64}})
    EXPECT_EQ(formatOf(book), std::nullopt);
  EXPECT_EQ(formatOfName("U4S_G48"), std::nullopt);
  EXPECT_EQ(formatOfName("U4S"), std::nullopt);
}

/// A row takes what its type says, rounded up to a unit of each plane.
TEST(AffineTest, RowsHaveTheBytesOfTheirType) {
  EXPECT_EQ(info(*formatOf({4, Kind::Symmetric, Scale::F16, 64})).rowBytes(576), 288 + 9 * 2u);
  EXPECT_EQ(info(*formatOf({4, Kind::Symmetric, Scale::F16, 128})).rowBytes(576), 288 + 5 * 2u); // 4.5 groups
  EXPECT_EQ(info(*formatOf({3, Kind::Zero, Scale::F16, 64})).rowBytes(576), 216 + 9 * 2 + 5u);
  EXPECT_EQ(info(*formatOf({5, Kind::Zero, Scale::F32, 32})).rowBytes(96), 60 + 3 * 4 + 3u);
  EXPECT_EQ(info(*formatOf({2, Kind::Minimum, Scale::F16, 0})).rowBytes(96), 24 + 4u);
  EXPECT_EQ(info(*formatOf({4, Kind::Symmetric, Scale::F16, 64, 4})).rowBytes(576), 144 + 9 * 2 + 72u);
  EXPECT_EQ(info(*formatOf({8, Kind::Zero, Scale::F16, 32, 8})).rowBytes(96), 48 + 3 * 2 + 3 + 12u);
  // Of the bytes of dense codes in groups of the same size.
  for (uint32_t group : {32u, 64u, 128u}) {
    const double dense = double(info(*formatOf({4, Kind::Symmetric, Scale::F16, group})).rowBytes(1536));
    EXPECT_LE(double(info(*formatOf({4, Kind::Symmetric, Scale::F16, group, 4})).rowBytes(1536)) / dense, 0.778);
  }
}

TEST(AffineTest, PackedRowsDecodeToWhatTheyMean) {
  std::mt19937 random(1);
  for (const AffineFormat &affine : all()) {
    const Format format = *formatOf(affine);
    SCOPED_TRACE(info(format).name);
    const size_t K = 160, group = affine.group ? affine.group : K, groups = affine.groups(K);
    std::vector<uint8_t> codes(K);
    for (uint8_t &code : codes)
      code = uint8_t(random() % (affine.isFloat() ? 0x7c : 1u << affine.bits)); // no NaN
    std::vector<float> scales(groups), offsets(groups);
    for (size_t g = 0; g < groups; ++g) {
      scales[g] = halfToFloat(uint16_t(0x2c00 + random() % 0x1000));
      offsets[g] = affine.kind == Kind::Zero ? float(random() % (1u << affine.bits))
                                             : halfToFloat(uint16_t(0xac00 + random() % 0x1000));
      if (affine.scale == Scale::BF16)
        for (float *value : {&scales[g], &offsets[g]})
          *value = affine.kind == Kind::Zero && value == &offsets[g] ? *value : bfloatToFloat(floatToBfloat(*value));
    }
    std::vector<std::byte> row(info(format).rowBytes(K));
    const std::vector<uint32_t> patterns = randomPatterns(affine, K, random);
    packAffineRow(format, codes.data(), scales.data(), offsets.data(), row.data(), K, patterns.data());
    std::vector<float> decoded(K);
    decode(format, row.data(), decoded.data(), K);
    for (size_t k = 0; k < K; ++k) {
      if (affine.among && !(patterns[k / 32] >> k % 32 & 1)) {
        ASSERT_EQ(decoded[k], 0);
        continue;
      }
      const double scale = scales[k / group], offset = offsets[k / group];
      const double number = affine.code == AffineFormat::Code::E4M3   ? double(e4m3ToFloat(codes[k]))
                            : affine.code == AffineFormat::Code::E5M2 ? double(e5m2ToFloat(codes[k]))
                            : affine.isSigned()                       ? double(int8_t(codes[k]))
                                                                      : double(codes[k]) - affine.half();
      const double expected = affine.kind == Kind::Zero      ? scale * (number - offset)
                              : affine.kind == Kind::Minimum ? scale * number + offset
                                                             : scale * number;
      ASSERT_EQ(decoded[k], float(expected)) << k;
    }
  }
}

TEST(AffineTest, CodesChooseFromTheBookOfTheirRow) {
  std::mt19937 random(4);
  for (uint32_t bits : {2u, 3u, 4u}) {
    const Format format = *formatOf({bits, Kind::Book});
    EXPECT_EQ(info(format).name, "U" + std::to_string(bits) + "B_ROW");
    EXPECT_EQ(formatOfName(info(format).name), format);
    EXPECT_EQ(info(format).rowBytes(96), 12 * bits + (2u << bits));
    std::vector<uint8_t> codes(96);
    for (uint8_t &code : codes)
      code = uint8_t(random() % (1u << bits));
    std::vector<float> book(size_t(1) << bits);
    for (float &number : book)
      number = halfToFloat(uint16_t(0x2c00 + random() % 0x1000));
    std::vector<std::byte> row(info(format).rowBytes(96));
    packAffineRow(format, codes.data(), book.data(), nullptr, row.data(), 96);
    std::vector<float> decoded(96);
    decode(format, row.data(), decoded.data(), 96);
    for (size_t k = 0; k < 96; ++k)
      ASSERT_EQ(decoded[k], book[codes[k]]) << k;
  }
}

/// The tiled layout only moves bytes, and pads rows and runs alone.
TEST(AffineTest, LayoutsRoundTrip) {
  std::mt19937 random(2);
  std::vector<AffineFormat> formats = all();
  formats.push_back({4, Kind::Book});
  for (const AffineFormat &affine : formats) {
    const Format format = *formatOf(affine);
    SCOPED_TRACE(info(format).name);
    for (size_t N : {1u, 13u, 16u}) {
      const size_t K = 288;
      const TensorLayout layout = describe(format, N, K);
      std::vector<std::byte> source(N * layout.rowBytes), tiled(layout.bytes), back(source.size());
      for (std::byte &byte : source)
        byte = std::byte(random());
      relayout(layout, source.data(), tiled.data());
      unlayout(layout, tiled.data(), back.data());
      ASSERT_EQ(back, source);
      const size_t rows = (N + 7) / 8 * 8;
      size_t bytes = 0;
      for (const PlaneLayout &plane : layout.planes) {
        bytes += plane.bytes - rows * (plane.units - plane.pieces) * plane.unitBytes;
        EXPECT_LT(plane.units - plane.pieces, plane.run);
      }
      EXPECT_EQ(bytes, rows * layout.rowBytes);
    }
  }
}

/// What kernels compute: the piece of a unit is its number over the plane's share.
TEST(AffineTest, SharedPlanesHaveAPieceForSeveralUnits) {
  const TensorLayout layout = describe(*formatOf({4, Kind::Zero, Scale::F16, 64}), 10, 288);
  const PlaneLayout &scales = *layout.plane("scales"), &zeros = *layout.plane("zeros");
  EXPECT_EQ(layout.units, 9u);
  EXPECT_EQ(scales.units, 5u);
  EXPECT_EQ(scales.share, 2u);
  EXPECT_EQ(zeros.units, 3u);
  EXPECT_EQ(zeros.share, 4u);
  EXPECT_EQ(layout.offsetOf(scales, 9, 4), scales.offset + ((1 * 5 + 4) * 8 + 1) * 2);
  EXPECT_EQ(layout.span, 2u); // one scale for both units
}

/// Scales of single units lie side by side, and so do zero points, of which there are half as many.
TEST(AffineTest, ScalesOfUnitsLieInRuns) {
  const TensorLayout layout = describe(*formatOf({4, Kind::Zero, Scale::F16, 32}), 10, 288);
  const PlaneLayout &scales = *layout.plane("scales"), &zeros = *layout.plane("zeros");
  EXPECT_EQ(layout.span, 4u);
  EXPECT_EQ(scales.run, 4u);
  EXPECT_EQ(scales.pieces, 9u);
  EXPECT_EQ(scales.units, 12u);
  EXPECT_EQ(zeros.run, 2u);
  EXPECT_EQ(zeros.pieces, 5u);
  EXPECT_EQ(zeros.units, 6u);
  EXPECT_EQ(layout.offsetOf(scales, 9, 6), scales.offset + (8 * 12 + (1 * 8 + 1) * 4 + 2) * 2);
  EXPECT_EQ(layout.offsetOf(zeros, 9, 3), zeros.offset + 8 * 6 + (1 * 8 + 1) * 2 + 1);
}

} // namespace
