// Packed words written out by hand from the descriptions of the formats.
#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

static void expectAssembled(const std::string &weights, const std::string &assemble, const std::string &from,
                            const std::string &to, llvm::ArrayRef<int64_t> shape, const std::vector<double> &expected) {
  std::string floats = "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "xf32>";
  expectResult("func.func @f() -> " + floats + " {\n" + weights + "\n  %q = llm.assemble " + assemble + " : " + from +
                   " -> " + to + "\n  %y = llm.dequantize %q : " + to + " -> " + floats + "\n  return %y : " + floats +
                   "\n}",
               {}, shape, expected);
}

TEST(AssembleOps, GPTQ) {
  // Two columns of eight 4-bit codes along K, two groups of four. Zero points are stored less one, packed along N.
  // Column 0: codes 1 … 8, column 1: codes 15, 0, 15, 0, ….
  expectAssembled(R"(  %c = llm.weight dense<[[-2023406815, 252645135]]> : tensor<1x2xi32>
  %s = llm.weight dense<[[0.5, 2.0], [1.0, 4.0]]> : tensor<2x2xf16>
  %z = llm.weight dense<[[115], [16]]> : tensor<2x1xi32>)",
                  "%c scales(%s : tensor<2x2xf16>) zeros(%z : tensor<2x1xi32>)", "tensor<1x2xi32>",
                  "tensor<2x8x!llm.q<u4, 4:f16 zero u4>, #llm.layout<gptq>>", {2, 8},
                  // 0x87654321; 0x0f0f0f0f; zeros 0x73 → 3 + 1, 7 + 1; 0x10 → 0 + 1, 1 + 1.
                  {-1.5, -1, -0.5, 0, 4, 5, 6, 7, 14, -16, 14, -16, 52, -8, 52, -8});
}

TEST(AssembleOps, AnOrderPicksColumnsOfTheCodes) {
  // Codes 1 … 8; the groups of scales are those of the result's columns.
  expectAssembled(R"(  %c = llm.weight dense<[[-2023406815]]> : tensor<1x1xi32>
  %s = llm.weight dense<[[1.0], [10.0]]> : tensor<2x1xf16>
  %z = llm.weight dense<[[15], [15]]> : tensor<2x1xi32>
  %o = llm.weight dense<[7, 6, 5, 4, 0, 1, 2, 3]> : tensor<8xi32>)",
                  "%c scales(%s : tensor<2x1xf16>) zeros(%z : tensor<2x1xi32>) order(%o : tensor<8xi32>)",
                  "tensor<1x1xi32>", "tensor<1x8x!llm.q<u4, 4:f16 zero u4>, #llm.layout<gptq>>", {1, 8},
                  {8, 7, 6, 5, 10, 20, 30, 40});
}

TEST(AssembleOps, GPTQZeroPointWraps) {
  // A zero point of 0 is stored as 15.
  expectAssembled(R"(  %c = llm.weight dense<[[-2023406815]]> : tensor<1x1xi32>
  %s = llm.weight dense<[[1.0]]> : tensor<1x1xf16>
  %z = llm.weight dense<[[15]]> : tensor<1x1xi32>)",
                  "%c scales(%s : tensor<1x1xf16>) zeros(%z : tensor<1x1xi32>)", "tensor<1x1xi32>",
                  "tensor<1x8x!llm.q<u4, 8:f16 zero u4>, #llm.layout<gptq>>", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(AssembleOps, AWQ) {
  // K = 1 row, N = 8 columns in one word: place i of the word holds column 0, 2, 4, 6, 1, 3, 5, 7.
  // The word 0x87654321 has place i holding i + 1: columns 0 … 7 are 1, 5, 2, 6, 3, 7, 4, 8. Zero points all 1.
  expectAssembled(R"(  %c = llm.weight dense<[[-2023406815]]> : tensor<1x1xi32>
  %s = llm.weight dense<[[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]]> : tensor<1x8xf16>
  %z = llm.weight dense<[[286331153]]> : tensor<1x1xi32>)",
                  "%c scales(%s : tensor<1x8xf16>) zeros(%z : tensor<1x1xi32>)", "tensor<1x1xi32>",
                  "tensor<8x1x!llm.q<u4, 1:f16 zero u4>, #llm.layout<awq>>", {8, 1}, {0, 4, 1, 5, 4, 12, 6, 14});
}

TEST(AssembleOps, PackedBytesWithAScaleARow) {
  expectAssembled(R"(  %c = llm.weight dense<[[1, -2, 3], [-128, 0, 127]]> : tensor<2x3xi8>
  %s = llm.weight dense<[[0.5], [2.0]]> : tensor<2x1xf32>)",
                  "%c scales(%s : tensor<2x1xf32>)", "tensor<2x3xi8>",
                  "tensor<2x3x!llm.q<i8, *:f32>, #llm.layout<packed>>", {2, 3}, {0.5, -1, 1.5, -256, 0, 254});
}

TEST(AssembleOps, PackedThreeBitCodesCrossBytes) {
  // Codes 0 … 7 in 24 bits, low bits first: 0x88, 0xc6, 0xfa; scale 1, minimum −1.
  expectAssembled(R"(  %c = llm.weight dense<[[-120, -58, -6]]> : tensor<1x3xi8>
  %s = llm.weight dense<[[1.0, 10.0]]> : tensor<1x2xf16>
  %m = llm.weight dense<[[-1.0, 0.5]]> : tensor<1x2xf16>)",
                  "%c scales(%s : tensor<1x2xf16>) zeros(%m : tensor<1x2xf16>)", "tensor<1x3xi8>",
                  "tensor<1x8x!llm.q<u3, 4:f16+f16>, #llm.layout<packed>>", {1, 8},
                  {-1, 0, 1, 2, 40.5, 50.5, 60.5, 70.5});
}

TEST(AssembleOps, PackedOffsetCodesWithPackedZeros) {
  // compressed-tensors: codes of a row in words, zero points packed along the first dimension.
  expectAssembled(R"(  %c = llm.weight dense<[[33], [67]]> : tensor<2x1xi32>
  %s = llm.weight dense<[[1.0], [1.0]]> : tensor<2x1xf16>
  %z = llm.weight dense<[[33]]> : tensor<1x1xi32>)",
                  "%c scales(%s : tensor<2x1xf16>) zeros(%z : tensor<1x1xi32>)", "tensor<2x1xi32>",
                  "tensor<2x2x!llm.q<u4, *:f16 zero u4>, #llm.layout<packed>>", {2, 2}, {0, 1, 1, 2});
}

TEST(AssembleOps, TwoLevelsOfScales) {
  // Codes 1, 2 | 3, 0 in two bits; inner scales 1, 3; outer 0.5: w = 0.5 · inner · code.
  expectAssembled(R"(  %c = llm.weight dense<[[57]]> : tensor<1x1xi8>
  %s = llm.weight dense<[[1, 3]]> : tensor<1x2xi8>
  %d = llm.weight dense<[[0.5]]> : tensor<1x1xf16>)",
                  "%c scales(%s, %d : tensor<1x2xi8>, tensor<1x1xf16>)", "tensor<1x1xi8>",
                  "tensor<1x4x!llm.q<u2, 2:u6, 4:f16>, #llm.layout<packed>>", {1, 4}, {0.5, 1, 4.5, 0});
}

TEST(AssembleOps, TwoLevelsOfMinima) {
  // w = d·s·code − dm·m: 2·1·1 − 0.5·4, …; the second group has m = 2.
  expectAssembled(
      R"(  %c = llm.weight dense<[[57]]> : tensor<1x1xi8>
  %s = llm.weight dense<[[1, 3]]> : tensor<1x2xi8>
  %m = llm.weight dense<[[4, 2]]> : tensor<1x2xi8>
  %d = llm.weight dense<[[2.0]]> : tensor<1x1xf16>
  %dm = llm.weight dense<[[0.5]]> : tensor<1x1xf16>)",
      "%c scales(%s, %d : tensor<1x2xi8>, tensor<1x1xf16>) zeros(%m, %dm : tensor<1x2xi8>, tensor<1x1xf16>)",
      "tensor<1x1xi8>", "tensor<1x4x!llm.q<u2, 2:u6-u6, 4:f16-f16>, #llm.layout<packed>>", {1, 4}, {0, 2, 17, -1});
}

TEST(AssembleOps, LearnedCodebooks) {
  // One codebook a row; codes 0, 1, 2, 3 of two bits.
  expectAssembled(R"(  %c = llm.weight dense<[[-28], [27]]> : tensor<2x1xi8>
  %s = llm.weight dense<[[1.0], [10.0]]> : tensor<2x1xf16>
  %b = llm.weight dense<[[-1.0, 0.0, 1.0, 5.0], [2.0, 3.0, 4.0, 6.0]]> : tensor<2x4xf32>)",
                  "%c scales(%s : tensor<2x1xf16>) codebook(%b : tensor<2x4xf32>)", "tensor<2x1xi8>",
                  "tensor<2x4x!llm.q<cb<mine, 2>, *:f16>, #llm.layout<packed>>", {2, 4}, {-1, 0, 1, 5, 60, 40, 30, 20});
}

TEST(AssembleOps, FloatCodesWithRawScales) {
  // e4m3: 0x38 = 1, 0xc0 = −2. A scale of e8m0 bits 128 is 2.
  expectAssembled(R"(  %c = llm.weight dense<[[56, -64]]> : tensor<1x2xi8>
  %s = llm.weight dense<[[-128]]> : tensor<1x1xi8>)",
                  "%c scales(%s : tensor<1x1xi8>)", "tensor<1x2xi8>",
                  "tensor<1x2x!llm.q<f8E4M3, *:e8m0>, #llm.layout<packed>>", {1, 2}, {2, -4});
}

TEST(AssembleOps, TwoOfFour) {
  // Ways to keep two of four: 01 02 03 12 13 23. Row 0: numbers 4 and 1 (0b001100), codes 1, 2, 3, −4; row 1: 0 and 5.
  expectAssembled(R"(  %c = llm.weight dense<[[33, -61], [-1, 127]]> : tensor<2x2xi8>
  %s = llm.weight dense<[[1.0], [0.5]]> : tensor<2x1xf16>
  %p = llm.weight dense<[[12], [40]]> : tensor<2x1xi8>)",
                  "%c scales(%s : tensor<2x1xf16>) patterns(%p : tensor<2x1xi8>)", "tensor<2x2xi8>",
                  "tensor<2x8x!llm.q<i4, 2:4, *:f16>, #llm.layout<packed>>", {2, 8},
                  {0, 1, 0, 2, 3, 0, -4, 0, -0.5, -0.5, 0, 0, 0, 0, -0.5, 3.5});
}
