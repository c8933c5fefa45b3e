// The layouts of GPTQ, AWQ and packed checkpoints, against codes that the tests
// pack themselves, bit by bit.
#include "test/lib/Weights/ExprTesting.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

constexpr size_t N = 16, K = 64;

/// Bits written to places of one's choice in 32-bit words.
class Words {
public:
  explicit Words(size_t count) : words(count) {}
  /// `bits` bits of `value` from bit `from` of the words base, base + stride, …
  void put(size_t base, size_t stride, size_t from, unsigned bits,
           uint32_t value) {
    for (unsigned i = 0; i < bits; ++i)
      if (value >> i & 1)
        words[base + (from + i) / 32 * stride] |= 1u << (from + i) % 32;
  }
  std::string literal(llvm::StringRef type) const {
    std::string hex;
    for (uint32_t word : words)
      for (int byte = 0; byte < 4; ++byte)
        for (int half = 1; half >= 0; --half)
          hex += "0123456789ABCDEF"[word >> (8 * byte + 4 * half) & 15];
    return ("llm.weight dense<\"0x" + hex + "\"> : " + type + "\n").str();
  }
  std::vector<uint32_t> words;
};

std::string floats(ArrayRef<float> values, llvm::StringRef type) {
  Words words(values.size());
  std::memcpy(words.words.data(), values.data(), values.size() * 4);
  return words.literal(type);
}

class AssembleTest : public ExprTest {
protected:
  /// Codes of `bits` bits and zero points of 4, scales that tell rows and
  /// groups apart: w = s (code - z).
  void SetUp() override {
    ExprTest::SetUp();
    std::mt19937 random(5);
    for (uint32_t &code : codes)
      code = random();
    for (uint32_t &zero : zeros)
      zero = random() % 16;
    for (size_t i = 0; i < 2 * N; ++i)
      scales[i] = 0.25f + float(i);
  }
  double expected(size_t n, size_t k, unsigned bits) const {
    const size_t g = n * 2 + k / 32;
    return scales[g] * (double(code(n, k, bits)) - zeros[g]);
  }
  uint32_t code(size_t n, size_t k, unsigned bits) const {
    return codes[n * K + k] & ((1u << bits) - 1);
  }
  void compare(const WeightExpr &expr, unsigned bits) {
    // Codes stay codes where zero points have as many bits as they.
    EXPECT_EQ(sprig::quant::info(expr.format()).name,
              bits == 4 ? "U4Z_G32_F32" : "F32");
    const auto got = numbers(expr);
    for (size_t n = 0; n < N; ++n)
      for (size_t k = 0; k < K; ++k)
        ASSERT_EQ(got[n * K + k], expected(n, k, bits)) << n << ", " << k;
  }
  /// Scales as [groups, N] for GPTQ and AWQ, or [N, groups].
  std::string scaleLiteral(bool byColumns) {
    if (!byColumns)
      return "%s = " + floats(scales, "tensor<16x2xf32>");
    std::vector<float> turned(2 * N);
    for (size_t n = 0; n < N; ++n)
      for (size_t g = 0; g < 2; ++g)
        turned[g * N + n] = scales[n * 2 + g];
    return "%s = " + floats(turned, "tensor<2x16xf32>");
  }

  uint32_t codes[N * K], zeros[N * 2];
  float scales[N * 2];
};

TEST_F(AssembleTest, GPTQ) {
  for (unsigned bits : {2u, 3u, 4u, 8u}) {
    SCOPED_TRACE(bits);
    const std::string rows = std::to_string(K * bits / 32);
    Words packed(K * bits / 32 * N), zero(2 * N * 4 / 32);
    for (size_t n = 0; n < N; ++n) {
      for (size_t k = 0; k < K; ++k)
        packed.put(n, N, k * bits, bits, code(n, k, bits));
      for (size_t g = 0; g < 2; ++g) // one less, in four bits
        zero.put(g * N / 8, 1, n * 4, 4, (zeros[n * 2 + g] + 15) % 16);
    }
    auto expr =
        open("%c = " + packed.literal("tensor<" + rows + "x16xi32>") +
             scaleLiteral(true) + "%z = " + zero.literal("tensor<2x2xi32>") +
             "%w = llm.assemble %c scales(%s : tensor<2x16xf32>) zeros(%z : "
             "tensor<2x2xi32>) : tensor<" +
             rows +
             "x16xi32> -> "
             "tensor<16x64x!llm.q<u" +
             std::to_string(bits) + ", 32:f32 zero u4>, #llm.layout<gptq>>");
    ASSERT_TRUE(expr);
    compare(*expr, bits);
  }
}

/// Columns of two groups in turn, as activation order may leave them: sorted by
/// group, the numbers of each group are contiguous.
TEST_F(AssembleTest, GPTQWithGroupIndex) {
  Words packed(K * 4 / 32 * N), groups(K);
  for (size_t k = 0; k < K; ++k) {
    groups.words[k] = k % 2;
    const size_t sorted = k % 2 * 32 + k / 2;
    for (size_t n = 0; n < N; ++n)
      packed.put(n, N, k * 4, 4, code(n, sorted, 4));
  }
  auto expr =
      open("%c = " + packed.literal("tensor<8x16xi32>") + scaleLiteral(true) +
           "%z = llm.weight dense<2> : tensor<2x16xi8>\n%g = " +
           groups.literal("tensor<64xi32>") +
           "%o = llm.argsort %g : tensor<64xi32>\n"
           "%w = llm.assemble %c scales(%s : tensor<2x16xf32>) "
           "zeros(%z : tensor<2x16xi8>) order(%o : tensor<64xi32>) "
           ": tensor<8x16xi32> -> "
           "tensor<16x64x!llm.q<u4, 32:f32 zero u4>, #llm.layout<gptq>>");
  ASSERT_TRUE(expr);
  std::fill(std::begin(zeros), std::end(zeros), 2);
  compare(*expr, 4);
}

TEST_F(AssembleTest, AWQ) {
  constexpr size_t kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7}; // AutoAWQ's
  Words packed(K * N / 8), zero(2 * N / 8);
  for (size_t word = 0; word < N / 8; ++word)
    for (size_t place = 0; place < 8; ++place) {
      const size_t n = 8 * word + kOrder[place];
      for (size_t k = 0; k < K; ++k)
        packed.put(k * N / 8 + word, 1, 4 * place, 4, code(n, k, 4));
      for (size_t g = 0; g < 2; ++g)
        zero.put(g * N / 8 + word, 1, 4 * place, 4, zeros[n * 2 + g]);
    }
  auto expr =
      open("%c = " + packed.literal("tensor<64x2xi32>") + scaleLiteral(true) +
           "%z = " + zero.literal("tensor<2x2xi32>") +
           "%w = llm.assemble %c scales(%s : tensor<2x16xf32>) "
           "zeros(%z : tensor<2x2xi32>) : tensor<64x2xi32> -> "
           "tensor<16x64x!llm.q<u4, 32:f32 zero u4>, #llm.layout<awq>>");
  ASSERT_TRUE(expr);
  compare(*expr, 4);
}

/// compressed-tensors: zero points packed along the rows.
TEST_F(AssembleTest, PackedWithPackedZeros) {
  Words packed(N * K * 4 / 32), zero(2 * N * 4 / 32);
  for (size_t n = 0; n < N; ++n) {
    for (size_t k = 0; k < K; ++k)
      packed.put(n * K * 4 / 32, 1, k * 4, 4, code(n, k, 4));
    for (size_t g = 0; g < 2; ++g)
      zero.put(g, 2, n * 4, 4, zeros[n * 2 + g]);
  }
  auto expr =
      open("%c = " + packed.literal("tensor<16x8xi32>") + scaleLiteral(false) +
           "%z = " + zero.literal("tensor<2x2xi32>") +
           "%w = llm.assemble %c scales(%s : tensor<16x2xf32>) "
           "zeros(%z : tensor<2x2xi32>) : tensor<16x8xi32> -> "
           "tensor<16x64x!llm.q<u4, 32:f32 zero u4>, #llm.layout<packed>>");
  ASSERT_TRUE(expr);
  compare(*expr, 4);
  // A view like any other: cut by rows, its numbers stay.
  auto cut =
      open("%c = " + packed.literal("tensor<16x8xi32>") + scaleLiteral(false) +
           "%z = " + zero.literal("tensor<2x2xi32>") +
           "%w = llm.assemble %c scales(%s : tensor<16x2xf32>) "
           "zeros(%z : tensor<2x2xi32>) : tensor<16x8xi32> -> "
           "tensor<16x64x!llm.q<u4, 32:f32 zero u4>, #llm.layout<packed>>\n"
           "%t = llm.slice %w 5 to 6 axis 0 : "
           "tensor<16x64x!llm.q<u4, 32:f32 zero u4>, #llm.layout<packed>>");
  EXPECT_EQ(numbers(*cut)[40], expected(5, 40, 4));
}

TEST_F(AssembleTest, LevelsMinimaAndCodes) {
  // w = s1 s0 code - m1 m0, six-bit codes that straddle bytes.
  auto expr = open(R"(
    %c = llm.weight dense<"0x0110C3A21C7F"> : tensor<1x6xi8>
    %s0 = llm.weight dense<[[3, 5]]> : tensor<1x2xi8>
    %s1 = llm.weight dense<[[0.5]]> : tensor<1x1xf32>
    %m0 = llm.weight dense<[[7, 60]]> : tensor<1x2xi8>
    %m1 = llm.weight dense<[[0.25]]> : tensor<1x1xf32>
    %w = llm.assemble %c scales(%s0, %s1 : tensor<1x2xi8>, tensor<1x1xf32>)
        zeros(%m0, %m1 : tensor<1x2xi8>, tensor<1x1xf32>) : tensor<1x6xi8>
      -> tensor<1x8x!llm.q<u6, 4:u6-u6, 8:f32-f32>, #llm.layout<packed>>)");
  ASSERT_TRUE(expr);
  const uint64_t stream = 0x7f1ca2c31001;
  const auto got = numbers(*expr);
  for (size_t k = 0; k < 8; ++k) {
    const double code = double(stream >> (6 * k) & 63);
    EXPECT_EQ(got[k], 0.5 * (k < 4 ? 3 : 5) * code - 0.25 * (k < 4 ? 7 : 60));
  }

  // int8 with a scale a row; FP8 codes declared as i8; e8m0 scales as bytes.
  auto int8 = open(R"(
    %c = llm.weight dense<[[-128, 3], [127, -1]]> : tensor<2x2xi8>
    %s = llm.weight dense<[[0.5], [2.0]]> : tensor<2x1xf32>
    %w = llm.assemble %c scales(%s : tensor<2x1xf32>) : tensor<2x2xi8>
      -> tensor<2x2x!llm.q<i8, *:f32>, #llm.layout<packed>>)");
  EXPECT_EQ(numbers(*int8), (std::vector<double>{-64, 1.5, 254, -2}));
  auto fp8 = open(R"(
    %c = llm.weight dense<[[56, -72]]> : tensor<1x2xi8>
    %s = llm.weight dense<[[-128]]> : tensor<1x1xi8>
    %w = llm.assemble %c scales(%s : tensor<1x1xi8>) : tensor<1x2xi8>
      -> tensor<1x2x!llm.q<f8E4M3, *:e8m0>, #llm.layout<packed>>)");
  EXPECT_EQ(numbers(*fp8), (std::vector<double>{2, -2}));
}

TEST_F(AssembleTest, Codebooks) {
  auto known = open(R"(
    %c = llm.weight dense<"0x0F87"> : tensor<1x2xi8>
    %s = llm.weight dense<[[2.0]]> : tensor<1x1xf32>
    %w = llm.assemble %c scales(%s : tensor<1x1xf32>) : tensor<1x2xi8>
      -> tensor<1x4x!llm.q<cb<nf4, 4>, *:f32>, #llm.layout<packed>>)");
  EXPECT_EQ(numbers(*known),
            (std::vector<double>{2, -2, 0, 2 * double(0.07958029955625534f)}));
  auto learned = open(R"(
    %c = llm.weight dense<"0xE4E4"> : tensor<2x1xi8>
    %s = llm.weight dense<1.0> : tensor<1xf32>
    %b = llm.weight dense<[[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]]> : tensor<2x4xf32>
    %w = llm.assemble %c scales(%s : tensor<1xf32>) codebook(%b : tensor<2x4xf32>)
      : tensor<2x1xi8>
      -> tensor<2x4x!llm.q<cb<mine, 2>, *:f32>, #llm.layout<packed>>)");
  EXPECT_EQ(numbers(*learned),
            (std::vector<double>{0, 1, 2, 3, 10, 11, 12, 13}));
}

/// Signed codes and those with an offset reach the device as one format, with
/// the numbers that they mean; a type that scales are not stored as is decoded.
TEST_F(AssembleTest, CentredCodesShareAFormat) {
  const auto assembled = [&](const char *code, const char *stored) {
    return open(std::string("%c = llm.weight dense<\"0x") +
                "0123456789ABCDEFFEDCBA9876543210\"> : tensor<1x16xi8>\n" +
                "%s = llm.weight dense<0.5> : tensor<1x1x" + stored +
                ">\n%w = llm.assemble %c scales(%s : tensor<1x1x" + stored +
                ">) : tensor<1x16xi8> -> tensor<1x32x!llm.q<" + code +
                ", *:f16>, #llm.layout<packed>>");
  };
  const auto centred = assembled("i4", "f16"), offset = assembled("u4-8", "f16");
  EXPECT_EQ(sprig::quant::info(centred->format()).name, "U4S_ROW");
  EXPECT_EQ(offset->format(), centred->format());
  EXPECT_EQ(assembled("i4", "f32")->format(), sprig::quant::Format::F32);
  const auto signedCodes = numbers(*centred), offsetCodes = numbers(*offset);
  for (size_t k = 0; k < 32; ++k) {
    const int code = k < 16 ? int(k ^ 1) : int(15 - (k ^ 1) % 16);
    EXPECT_EQ(signedCodes[k], 0.5 * (code < 8 ? code : code - 16)) << k;
    EXPECT_EQ(offsetCodes[k], 0.5 * (code - 8)) << k;
  }
  EXPECT_EQ(numbers(*assembled("i4", "f32")), signedCodes);
}

/// What is kept of 2:4 reaches the device in a format that has patterns, with the numbers that it means; other shares of
/// other pieces are decoded.
TEST_F(AssembleTest, SparseCodes) {
  std::mt19937 random(9);
  Words packed(4 * N), patterns(2 * N);
  std::vector<double> expected(N * K, 0);
  const unsigned ways[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (size_t n = 0; n < N; ++n)
    for (size_t piece = 0; piece < K / 4; ++piece) {
      const uint32_t way = random() % 6;
      patterns.put(2 * n, 1, 3 * piece, 3, way);
      for (size_t rank = 0; rank < 2; ++rank) {
        const uint32_t number = random() % 16;
        packed.put(4 * n, 1, (2 * piece + rank) * 4, 4, number);
        expected[n * K + 4 * piece + ways[way][rank]] = 0.5 * (int(number ^ 8) - 8);
      }
    }
  const std::string parts = "%c = " + packed.literal("tensor<16x4xi32>") +
                            "%s = llm.weight dense<0.5> : tensor<16x2xf16>\n"
                            "%p = " + patterns.literal("tensor<16x2xi32>") +
                            "%w = llm.assemble %c scales(%s : tensor<16x2xf16>) "
                            "patterns(%p : tensor<16x2xi32>) : tensor<16x4xi32> -> ";
  auto sparse = open(parts + "tensor<16x64x!llm.q<i4, 2:4, 32:f16>, #llm.layout<packed>>");
  ASSERT_TRUE(sparse);
  EXPECT_EQ(sprig::quant::info(sparse->format()).name, "U4S_2OF4_G32");
  EXPECT_EQ(numbers(*sparse), expected);

  // One of two: a bit says which.
  auto other = open(R"(
    %c = llm.weight dense<"0x21"> : tensor<1x1xi8>
    %s = llm.weight dense<1.0> : tensor<1x1xf16>
    %p = llm.weight dense<2> : tensor<1x1xi8>
    %w = llm.assemble %c scales(%s : tensor<1x1xf16>) patterns(%p : tensor<1x1xi8>) : tensor<1x1xi8>
      -> tensor<1x4x!llm.q<i4, 1:2, *:f16>, #llm.layout<packed>>)");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->format(), sprig::quant::Format::F32);
  EXPECT_EQ(numbers(*other), (std::vector<double>{1, 0, 0, 2}));
}

TEST_F(AssembleTest, Refuses) {
  const std::string codes = "%c = llm.weight dense<0> : tensor<16x8xi32>\n";
  EXPECT_MESSAGE(
      refusal(codes + "%s = llm.weight dense<1.0> : tensor<3xf32>\n"
                      "%w = llm.assemble %c scales(%s : tensor<3xf32>) : "
                      "tensor<16x8xi32> -> "
                      "tensor<16x64x!llm.q<u4, 32:f32>, #llm.layout<packed>>"),
      "expects 32 scales, but got 3");
  EXPECT_MESSAGE(refusal(codes +
                         "%s = llm.weight dense<1.0> : tensor<16x2xf32>\n"
                         "%z = llm.weight dense<1> : tensor<3xi32>\n"
                         "%w = llm.assemble %c scales(%s : tensor<16x2xf32>) "
                         "zeros(%z : tensor<3xi32>) : "
                         "tensor<16x8xi32> -> tensor<16x64x!llm.q<u4, 32:f32 "
                         "zero u4>, #llm.layout<packed>>"),
                 "or 4 words of them, but got 3");
  EXPECT_MESSAGE(
      refusal(codes + "%s = llm.weight dense<1.0> : tensor<16x2xf32>\n"
                      "%o = llm.weight dense<64> : tensor<64xi32>\n"
                      "%w = llm.assemble %c scales(%s : tensor<16x2xf32>) "
                      "order(%o : tensor<64xi32>) : tensor<16x8xi32> -> "
                      "tensor<16x64x!llm.q<u4, 32:f32>, #llm.layout<packed>>"),
      "expects columns from 0 to 63 in the order, but got 64");
  EXPECT_MESSAGE(
      refusal(codes + "%s = llm.weight dense<0x7FC00000> : tensor<16x2xf32>\n"
                      "%w = llm.assemble %c scales(%s : tensor<16x2xf32>) : "
                      "tensor<16x8xi32> -> "
                      "tensor<16x64x!llm.q<u4, 32:f32>, #llm.layout<packed>>"),
      "expects finite scales, but got NaN at 0");
}

} // namespace
