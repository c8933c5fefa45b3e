// Expected numbers were made with numpy and Python's math, or are written out.
#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

static const Tensor kX = numbers({2, 4}, {1, -2, 3, 0.5, 0.25, 4, -1, 2});

TEST(NormOps, RmsNorm) {
  expectResult(R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %g = llm.weight dense<[1.0, 2.0, 0.5, -1.0]> : tensor<4xf32>
    %y = llm.rms_norm %x gamma(%g : tensor<4xf32>) eps(1.0e-5) : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })",
               {kX}, {2, 4},
               {0.529812199, -2.1192488, 0.794718299, -0.2649061, 0.108946839, 3.48629884, -0.217893677, -0.87157471},
               2e-6);
}

TEST(NormOps, RmsNormOfThePrunedWidth) {
  expectResult(R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = llm.rms_norm %x eps(0.0) count(6) : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })",
               {numbers({1, 4}, {1, 1, 2, 0})}, {1, 4}, {1, 1, 2, 0}); // Σx² = 6
}

TEST(NormOps, RmsNormPerHeadAndOverAllHeads) {
  // Per head, each head has its own mean; over the row, gamma spans both heads.
  expectResult(R"(func.func @f(%x: tensor<?x2x2xf32>) -> tensor<?x2x2xf32> {
    %y = llm.rms_norm %x eps(0.0) : tensor<?x2x2xf32>
    return %y : tensor<?x2x2xf32>
  })",
               {numbers({1, 2, 2}, {3, 3, -5, 5})}, {1, 2, 2}, {1, 1, -1, 1});
  expectResult(R"(func.func @f(%x: tensor<?x2x2xf32>) -> tensor<?x2x2xf32> {
    %g = llm.weight dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %y = llm.rms_norm %x gamma(%g : tensor<4xf32>) eps(0.0) : tensor<?x2x2xf32>
    return %y : tensor<?x2x2xf32>
  })",
               {numbers({1, 2, 2}, {1, 1, 1, 1})}, {1, 2, 2}, {1, 2, 3, 4});
}

TEST(NormOps, LayerNorm) {
  expectResult(R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %g = llm.weight dense<[1.0, 2.0, 0.5, -1.0]> : tensor<4xf32>
    %b = llm.weight dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %y = llm.layer_norm %x gamma(%g : tensor<4xf32>) beta(%b : tensor<4xf32>) eps(1.0e-5) : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })",
               {kX}, {2, 4},
               {1.21055839, -0.94781746, 3.666768235, 4.07018613, 0.435525061, 4.8555791, 2.385718449, 3.63475151},
               2e-6);
}

TEST(NormOps, RmsScale) {
  expectResult(R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?xf32> {
    %r = llm.rms_scale %x eps(1.0) : tensor<?x4xf32>
    return %r : tensor<?xf32>
  })",
               {numbers({2, 4}, {2, 2, 2, 0, 0, 0, 0, 0})}, {2}, {0.5, 1});
}

TEST(NormOps, QuantisedNorm) {
  // The row (3, −3) norms to ±1: codes ±127 of scale 1/127 are exact. (1, 3) norms to (0.447, 1.342), whose scale is
  // 1.342/127 and first code 42.33 → 42.
  expectResult(R"(func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %q = llm.rms_norm %x eps(0.0) : tensor<?x2xf32> -> tensor<?x2x!llm.q<i8, *:f32>>
    %y = llm.dequantize %q : tensor<?x2x!llm.q<i8, *:f32>> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({2, 2}, {3, -3, 1, 3})}, {2, 2}, {1, -1, 42 * 1.3416407865 / 127, 1.3416407865}, 1e-6);
}

TEST(NormOps, Rope) {
  // A base of 1 gives every pair the angle of one radian a position.
  expectResult(R"(func.func @f(%x: tensor<?x1x4xf32>, %p: tensor<?xi32>) -> tensor<?x1x4xf32> {
    %y = llm.rope %x at %p base(1.0) : tensor<?x1x4xf32>
    return %y : tensor<?x1x4xf32>
  })",
               {numbers({2, 1, 4}, {1, 2, 3, 4, 1, 0, 0, 1}), Tensor::ids({0, 1})}, {2, 1, 4},
               {1, 2, 3, 4, 0.540302306, -0.841470985, 0.841470985, 0.540302306}, 1e-6);
}

TEST(NormOps, RopeWithFrequenciesDimsAndFactors) {
  // numpy: pairs (0, 1), (2, 3) of frequencies .5, .1 at position 3, cosine and sine times 1.25; the rest passes.
  expectResult(R"(func.func @f(%x: tensor<?x1x6xf32>, %p: tensor<?xi32>) -> tensor<?x1x6xf32> {
    %f = llm.weight dense<[1.0, 0.2]> : tensor<2xf32>
    %y = llm.rope %x at %p frequencies(%f : tensor<2xf32>) dims(4) scale(0.5) amplitude(1.25) interleaved : tensor<?x1x6xf32>
    return %y : tensor<?x1x6xf32>
  })",
               {numbers({1, 1, 6}, {1, 2, 3, 4, 5, 6}), Tensor::ids({3})}, {1, 1, 6},
               {-2.40531596, 1.42371174, 2.1049108, 5.88488322, 5, 6}, 1e-6);
}

TEST(NormOps, RopeChoosesTheLongSetByPosition) {
  // Frequencies 0 (short) and π/2 (long): from position 3 on, an odd position turns.
  expectResult(R"(func.func @f(%x: tensor<?x1x2xf32>, %p: tensor<?xi32>) -> tensor<?x1x2xf32> {
    %f = llm.weight dense<[[0.0], [1.57079632679]]> : tensor<2x1xf32>
    %y = llm.rope %x at %p frequencies(%f : tensor<2x1xf32>) long_from(3) : tensor<?x1x2xf32>
    return %y : tensor<?x1x2xf32>
  })",
               {numbers({3, 1, 2}, {1, 2, 1, 2, 1, 2}), Tensor::ids({1, 2, 5})}, {3, 1, 2}, {1, 2, 1, 2, -2, 1}, 1e-6);
}

TEST(NormOps, Hadamard) {
  // Signs: bit 1 is set, so element 1 of each row changes sign. H2 · (1, −2) / √2 = (−1, 3) / √2.
  const double r = 0.70710678118654752;
  const std::string text = R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = llm.hadamard %x block(2) signs [2] : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })";
  expectResult(text, {numbers({1, 4}, {1, 2, 3, 4})}, {1, 4}, {-r, 3 * r, 7 * r, -r}, 1e-6);
  expectResult(R"(func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = llm.hadamard %x block(2) signs [2] inverse : tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })",
               {numbers({1, 4}, {-r, 3 * r, 7 * r, -r})}, {1, 4}, {1, 2, 3, 4}, 1e-6);
}
