// The rule of `llm.quantize`, checked on numbers whose codes and scales can be told by hand.
#include "lib/Reference/Codec.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

namespace {
/// Rounds one row to a type given as text, in f64.
std::vector<double> rounded(const std::string &type, std::vector<double> row, double clip = 1) {
  MLIRContext context;
  context.loadDialect<LLMDialect>();
  auto element = dyn_cast_if_present<QuantizedType>(parseType("!llm.q<" + type + ">", &context));
  if (!element)
    return {};
  Workers workers(1);
  EXPECT_TRUE(succeeded(roundToCodes<double>(workers, element, row.data(), 1, int64_t(row.size()), clip)));
  return row;
}

void expectRounded(const std::string &type, const std::vector<double> &row, const std::vector<double> &expected,
                   double tolerance = 1e-9) {
  SCOPED_TRACE(type);
  const auto got = rounded(type, row);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}
} // namespace

TEST(Codec, SymmetricTakesTheLargestMagnitude) {
  expectRounded("i8, *:f32", {127, -3.4, 0.5, 1.5}, {127, -3, 0, 2});        // ties to even
  expectRounded("u4-8, *:f32", {-14, 3, 1, 0}, {-14, 4, 0, 0}, 1e-6);        // scale 2; 1.5 → 2, 0.5 → 0
  expectRounded("i4, 2:f32", {7, 3.2, -0.7, 0.32}, {7, 3, -0.7, 0.3}, 1e-6); // a scale for each group
  expectRounded("u4, *:f32", {15, -4, 7.6, 0}, {15, 0, 8, 0});               // no negative codes
}

TEST(Codec, AGroupMayHaveATail) { expectRounded("i4, 4:f32", {7, 0, 0, 0, 0.7, 0.31}, {7, 0, 0, 0, 0.7, 0.3}, 1e-6); }

TEST(Codec, ZerosStayZeros) {
  for (const char *type : {"i8, *:f32", "u4, *:f16+f16", "u4, *:f16-f16", "u4, *:f16 zero u4", "f4E2M1, *:e8m0",
                           "u4, 2:u6-u6, 4:f16-f16", "cb<nf4, 4>, *:f32"})
    expectRounded(type, {0, 0, 0, 0}, {0, 0, 0, 0});
}

TEST(Codec, MinimumTakesTheRange) {
  // From 2 to 17: scale 1, minimum 2.
  expectRounded("u4, *:f16+f16", {2, 17, 5.4, 9.6}, {2, 17, 5, 10});
  // A subtracted minimum is not negative: zero is in the range, so 0 … 30 has scale 2.
  expectRounded("u4, *:f16-f16", {2, 30, 5.4, 9.6}, {2, 30, 6, 10});
  expectRounded("u4, *:f16-f16", {-2, 28, 5.4, 9.6}, {-2, 28, 6, 10});
}

TEST(Codec, ZeroPoint) {
  // −4 … 11: scale 1, zero point 4.
  expectRounded("u4, *:f32 zero u4", {-4, 11, 0.3, 5.6}, {-4, 11, 0, 6});
  // All positive: the zero point is 0.
  expectRounded("u4, *:f32 zero u4", {3, 15, 7.2}, {3, 15, 7});
}

TEST(Codec, TwoLevels) {
  // The groups want scales 63 and 2.03. The outer scale is the largest over 63, that is 1, and the other rounds to 2:
  // 14.2 → 7.1 → 7 and 7 → 3.5 → 4.
  expectRounded("i4, 2:u6, 4:f32", {441, 63, 14.2, 7}, {441, 63, 14, 8}, 1e-6);
}

TEST(Codec, MinimaOfTwoLevels) {
  // Group 0: −63 … 882 (scale 63, minimum 63), group 1: −2 … 28 (scale 2, minimum 2): outer scale and minimum are 1.
  expectRounded("u4, 2:u6-u6, 4:f32-f32", {-63, 882, -2, 28}, {-63, 882, -2, 28}, 1e-6);
}

TEST(Codec, SmallFloats) {
  // Largest 6 → e8m0 scale 2^(2−2) = 1: the grid 0, ½, 1, 1½, 2, 3, 4, 6.
  expectRounded("f4E2M1, *:e8m0", {6, -0.3, 2.4, -5.1, 1.2}, {6, -0.5, 2, -6, 1});
  // Largest 100: 2^(6−2) = 16; 100/16 saturates at 6.
  expectRounded("f4E2M1, *:e8m0", {100, 20}, {96, 16});
  // ue4m3 keeps 6/6 = 1.
  expectRounded("f4E2M1, *:ue4m3", {6, 2.6}, {6, 3});
  // e4m3 has three bits of mantissa: 17 lies between 16 and 18.
  expectRounded("f8E4M3", {17.1, 448, 1000, 0.001}, {18, 448, 448, 0.001953125});
}

TEST(Codec, Codebooks) {
  expectRounded("cb<nf4, 4>, *:f32", {2, -2, 0.3, -0.1}, {2, -2, 2 * 0.16093020141124725, -2 * 0.09105003625154495},
                1e-7);
  const auto got = rounded("cb<iq4nl, 4>, *:f32", {-127, 50, 0.2, 113});
  EXPECT_EQ(got, (std::vector<double>{-127, 53, 1, 113}));
}

TEST(Codec, Trits) { expectRounded("trit, *:f16", {3, -3, 1, 2}, {3, -3, 0, 3}); }

TEST(Codec, NOfM) { expectRounded("i8, 2:4, *:f32", {1, -127, 3, 2, 9, 9, 9, 9}, {0, -127, 3, 0, 9, 9, 0, 0}); }

TEST(Codec, ClipNarrowsTheRange) {
  const auto got = rounded("i8, *:f32", {127, 1.2}, 0.5);
  EXPECT_NEAR(got[0], 63.5, 1e-6);
  EXPECT_NEAR(got[1], 1, 1e-6);
}

TEST(Codec, ScalesAreRoundedBeforeTheCodes) {
  // 1/7 in f16 is 0.1428222…; the code of the largest number stays 7.
  EXPECT_NEAR(rounded("i4, *:f16", {1, 0})[0], 7 * 0.142822265625, 1e-12);
}

TEST(Codec, RoundScale) {
  EXPECT_EQ(roundScale(ScaleType::f16(), 2049), 2048);
  EXPECT_EQ(roundScale(ScaleType::bf16(), 257), 256);
  EXPECT_EQ(roundScale(ScaleType::e8m0(), 7.9), 4);
  EXPECT_EQ(roundScale(ScaleType::ue4m3(), 17), 16);
  EXPECT_EQ(roundScale(ScaleType::ue4m3(), 1e6), 448);
  EXPECT_EQ(roundScale(ScaleType::unsignedInt(6), 99), 63);
  EXPECT_EQ(roundScale(ScaleType::signedInt(6), -99), -32);
}

TEST(Codec, RefusesGridsAndUnknownCodebooks) {
  MLIRContext context;
  context.loadDialect<LLMDialect>();
  Workers workers(1);
  for (const char *text : {"!llm.q<grid<iq2_xxs, 8>, 32:u4, 256:f16>", "!llm.q<cb<mine, 2>, *:f16>"}) {
    auto type = cast<QuantizedType>(parseType(text, &context));
    double row[8] = {};
    EXPECT_TRUE(failed(roundToCodes<double>(workers, type, row, 1, 8, 1)));
  }
}
