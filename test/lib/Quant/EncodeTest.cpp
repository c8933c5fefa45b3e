#include "lib/Quant/Format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace sprig::quant;

namespace {

std::vector<float> roundTrip(const FormatInfo &row,
                             const std::vector<float> &values) {
  std::vector<std::byte> bytes(row.rowBytes(values.size()));
  EXPECT_TRUE(encode(row.format, values.data(), bytes.data(), values.size()))
      << row.name;
  std::vector<float> decoded(values.size());
  decode(row.format, bytes.data(), decoded.data(), decoded.size());
  return decoded;
}

/// Largest error of a format in units of a block's spread: half a step, and
/// room for rounded scales.
double tolerance(Format format) {
  switch (format) {
  case Format::Q8_0:
    return 0.5 / 254 + 0.001;
  case Format::Q4_0:
    return 1.0 /
           15; // the end opposite to the extreme is clipped by up to a step
  case Format::Q5_0:
    return 1.0 / 31;
  case Format::Q4_1:
    return 0.5 / 15 + 0.002;
  case Format::Q4_K:
    return 0.5 / 15 + 0.04; // 6-bit scales and minima
  case Format::Q5_1:
    return 0.5 / 31 + 0.002;
  case Format::Q5_K:
    return 0.5 / 31 + 0.04;
  case Format::Q6_K:
    return 0.5 / 62 + 0.01;
  case Format::F16:
    return 0.0003;
  case Format::BF16:
    return 0.003;
  default:
    return 0;
  }
}

TEST(EncodeTest, ErrorsStayWithinAStep) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const FormatInfo &row : formats()) {
    if (!row.encode)
      continue;
    SCOPED_TRACE(row.name);
    std::vector<float> values(2048);
    for (float &value : values)
      value = normal(random);
    const auto decoded = roundTrip(row, values);
    const size_t block = std::max(row.blockElements, 32u);
    for (size_t first = 0; first < values.size(); first += block) {
      const auto [low, high] = std::minmax_element(
          values.begin() + first, values.begin() + first + block);
      const double spread = 2 * std::max(std::fabs(*low), std::fabs(*high));
      for (size_t i = first; i < first + block; ++i)
        ASSERT_LE(std::fabs(decoded[i] - values[i]),
                  tolerance(row.format) * spread)
            << "number " << i;
    }
  }
}

/// What the encoder writes is a fixed point: encoding decoded numbers again
/// loses nothing more than scale rounding.
/// Leaving out extremes pays where few bits are spent on many numbers, and never costs; what a format holds exactly stays.
TEST(EncodeTest, TheBestScalesLoseLess) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(2048);
  for (float &value : values)
    value = normal(random);
  for (const FormatInfo &row : formats()) {
    if (!row.encode || row.isPlain())
      continue;
    SCOPED_TRACE(row.name);
    std::vector<std::byte> bytes(row.rowBytes(values.size()));
    const auto errorAndNumbers = [&](std::vector<float> &decoded) {
      decode(row.format, bytes.data(), decoded.data(), decoded.size());
      double sum = 0;
      for (size_t i = 0; i < values.size(); ++i)
        sum += (double(values[i]) - decoded[i]) * (double(values[i]) - decoded[i]);
      return sum;
    };
    std::vector<float> plain(values.size()), best(values.size());
    ASSERT_TRUE(encode(row.format, values.data(), bytes.data(), values.size()));
    const double before = errorAndNumbers(plain);
    ASSERT_TRUE(encodeBest(row.format, values.data(), bytes.data(), values.size()));
    const double after = errorAndNumbers(best);
    EXPECT_LE(after, before);
    if (row.blockBytes * 8 <= 5 * row.blockElements)
      EXPECT_LT(after, 0.97 * before);
    std::vector<std::byte> again(bytes.size());
    if (row.format != Format::Q4_1 && row.format != Format::Q4_0)
      continue;
    ASSERT_TRUE(encodeBest(row.format, best.data(), again.data(), best.size()));
    std::vector<float> twice(values.size());
    decode(row.format, again.data(), twice.data(), twice.size());
    for (size_t i = 0; i < twice.size(); ++i)
      EXPECT_NEAR(twice[i], best[i], 2e-3);
  }
  std::vector<std::byte> none(2);
  EXPECT_FALSE(encodeBest(Format::Q2_K, values.data(), none.data(), 256));
}

TEST(EncodeTest, PlainValuesSurvive) {
  for (Format format :
       {Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q5_1, Format::Q8_0}) {
    const FormatInfo &row = info(format);
    std::vector<float> values(64);
    // -8 is the extreme; every code of every format is a whole number of steps
    // of 1.
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float(int(i % 16) - 8);
    const auto decoded = roundTrip(row, values);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(
          decoded[i], values[i],
          row.format == Format::Q4_0 || row.format == Format::Q4_1 ? 0 : 0.26)
          << row.name << " number " << i;
  }
}

TEST(EncodeTest, ZerosGiveZeros) {
  for (const FormatInfo &row : formats())
    if (row.encode)
      for (float value : roundTrip(row, std::vector<float>(512, 0.0f)))
        ASSERT_EQ(value, 0.0f) << row.name;
}

/// Not-a-number and infinity have no code; the encoder must still be defined
/// for them.
TEST(EncodeTest, NonFiniteNumbersDoNotTrap) {
  for (const FormatInfo &row : formats()) {
    if (!row.encode)
      continue;
    std::vector<float> values(256, 1.0f);
    values[3] = std::numeric_limits<float>::quiet_NaN();
    values[40] = std::numeric_limits<float>::infinity();
    values[70] = -std::numeric_limits<float>::infinity();
    roundTrip(row, values);
  }
}

TEST(EncodeTest, RefusesReadOnlyFormatsAndPartBlocks) {
  std::vector<float> values(256);
  std::vector<std::byte> bytes(1024);
  EXPECT_FALSE(encode(Format::IQ2_S, values.data(), bytes.data(), 256));
  EXPECT_FALSE(encode(Format::Q4_1, values.data(), bytes.data(), 33));
}

} // namespace
