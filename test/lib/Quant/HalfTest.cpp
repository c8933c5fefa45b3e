#include "lib/Quant/Half.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sprig::quant;

namespace {

/// The value by definition, from its fields.
float halfByDefinition(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  float value;
  if (exponent == 31)
    value = mantissa ? NAN : INFINITY;
  else
    value = exponent ? std::ldexp(1024.0f + float(mantissa), exponent - 25)
                     : std::ldexp(float(mantissa), -24);
  return half & 0x8000 ? -value : value;
}

TEST(HalfTest, EveryHalfDecodesAndEncodesBack) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const float value = halfToFloat(uint16_t(half)),
                expected = halfByDefinition(uint16_t(half));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << half;
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(value)))) << half;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected))
        << half;
    ASSERT_EQ(floatToHalf(value), half);
  }
}

/// Between two neighbouring halves the nearer one wins, and the even one at the
/// middle.
TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t half = 0; half < 0x7bff; ++half) {
    const float low = halfToFloat(uint16_t(half)),
                high = halfToFloat(uint16_t(half + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(floatToHalf(middle), half + (half & 1)) << half;
    ASSERT_EQ(floatToHalf(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(floatToHalf(std::nextafter(middle, INFINITY)), half + 1);
    ASSERT_EQ(floatToHalf(-middle), (half + (half & 1)) | 0x8000);
  }
  EXPECT_EQ(floatToHalf(65519.99f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(3e38f), 0x7c00);
  EXPECT_EQ(floatToHalf(-INFINITY), 0xfc00);
  EXPECT_EQ(floatToHalf(1e-40f), 0);
}

TEST(HalfTest, BfloatRoundsToNearestEven) {
  EXPECT_EQ(floatToBfloat(1.0f), 0x3f80);
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
  EXPECT_TRUE(std::isnan(
      bfloatToFloat(floatToBfloat(std::bit_cast<float>(0x7f800001u)))));
}

TEST(HalfTest, EightBitFloats) {
  EXPECT_EQ(e4m3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(e4m3ToFloat(0x38), 1.0f);
  EXPECT_EQ(e4m3ToFloat(0xb8), -1.0f);
  EXPECT_EQ(e4m3ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3ToFloat(0x08), 0x1p-6f);
  EXPECT_TRUE(std::signbit(e4m3ToFloat(0x80)));
  EXPECT_TRUE(std::isnan(e4m3ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3ToFloat(0xff)));
  EXPECT_EQ(e5m2ToFloat(0x3c), 1.0f);
  EXPECT_EQ(e5m2ToFloat(0x7b), 57344.0f);
  EXPECT_EQ(e5m2ToFloat(0x7c), INFINITY);
  EXPECT_EQ(e8m0ToFloat(127), 1.0f);
  EXPECT_EQ(e8m0ToFloat(0), std::ldexp(1.0f, -127));
  EXPECT_EQ(e8m0ToFloat(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(e8m0ToFloat(255)));
}

} // namespace
