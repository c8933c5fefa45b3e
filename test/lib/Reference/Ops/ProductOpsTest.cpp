// Small products written out by hand.
#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

TEST(ProductOps, EmbeddingClampsAndScales) {
  expectResult(R"(func.func @f(%ids: tensor<?xi32>) -> tensor<?x2xf32> {
    %t = llm.weight dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
    %y = llm.embedding %ids, %t scale(2.0) : tensor<3x2xf32> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {Tensor::ids({1, -1, 7})}, {3, 2}, {6, 8, 2, 4, 10, 12});
}

TEST(ProductOps, EmbeddingOfAnExpression) {
  expectResult(R"(func.func @f(%ids: tensor<?xi32>) -> tensor<?x2xf32> {
    %t = llm.weight dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
    %s = llm.slice %t 1 to 3 axis 0 : tensor<3x2xf32>
    %y = llm.embedding %ids, %s : tensor<2x2xf32> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {Tensor::ids({1, 0})}, {2, 2}, {5, 6, 3, 4});
}

TEST(ProductOps, LinearWithEverythingFused) {
  // w·(gamma ∘ x) = (1·2·1 + 2·1·3, 0·… + 1·1·3) = (8, 3); times 10, plus the bias, plus the residual.
  expectResult(R"(func.func @f(%x: tensor<?x2xf32>, %r: tensor<?xf32>, %h: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %w = llm.weight dense<[[1.0, 2.0], [0.0, 1.0]]> : tensor<2x2xf32>
    %g = llm.weight dense<[2.0, 1.0]> : tensor<2xf32>
    %b = llm.weight dense<[0.5, -0.5]> : tensor<2xf32>
    %y = llm.linear %x, %w gamma(%g : tensor<2xf32>) row_scale(%r) bias(%b : tensor<2xf32>) residual(%h)
        : tensor<?x2xf32>, tensor<2x2xf32> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({1, 2}, {1, 3}), numbers({1}, {10}), numbers({1, 2}, {100, 200})}, {1, 2}, {180.5, 229.5});
}

TEST(ProductOps, LinearReshapesImplicitly) {
  expectResult(R"(func.func @f(%x: tensor<?x2x1xf32>) -> tensor<?x2x2xf32> {
    %w = llm.weight dense<[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]> : tensor<4x2xf32>
    %y = llm.linear %x, %w : tensor<?x2x1xf32>, tensor<4x2xf32> -> tensor<?x2x2xf32>
    return %y : tensor<?x2x2xf32>
  })",
               {numbers({2, 2, 1}, {1, 2, 3, 4})}, {2, 2, 2}, {1, 2, 3, -1, 3, 4, 7, -1});
}

TEST(ProductOps, LinearOneProductAHead) {
  // Head 0 sums its two inputs, head 1 takes their difference and their first.
  expectResult(R"(func.func @f(%x: tensor<?x2x2xf32>) -> tensor<?x2x2xf32> {
    %w = llm.weight dense<[[[1.0, 1.0], [0.0, 0.0]], [[1.0, -1.0], [1.0, 0.0]]]> : tensor<2x2x2xf32>
    %y = llm.linear %x, %w : tensor<?x2x2xf32>, tensor<2x2x2xf32> -> tensor<?x2x2xf32>
    return %y : tensor<?x2x2xf32>
  })",
               {numbers({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {2, 2, 2}, {3, 0, -1, 3, 11, 0, -1, 7});
}

TEST(ProductOps, LinearOfAQuantisedWeight) {
  // One Q4_0 block a row: d = 0.5 (f16 0x3800, low byte first), all codes 9 → 0.5·(9 − 8), so the product is half
  // the sum of x; in the second row codes 8 → 0.
  std::string bytes = "0, 56";
  for (int i = 0; i < 16; ++i)
    bytes += ", -103"; // 0x99
  bytes += ", 0, 56";
  for (int i = 0; i < 16; ++i)
    bytes += ", -120"; // 0x88
  expectResult("func.func @f(%x: tensor<?x32xf32>) -> tensor<?x2xf32> {\n"
               "  %w = llm.weight dense<[" +
                   bytes +
                   "]> : tensor<36xi8> as tensor<2x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>\n"
                   "  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<2x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>> "
                   "-> tensor<?x2xf32>\n"
                   "  return %y : tensor<?x2xf32>\n}",
               {numbers({1, 32}, std::vector<double>(32, 3))}, {1, 2}, {48, 0});
}

TEST(ProductOps, GatedLinear) {
  // gate = 2·x0, up = x1 + 1·…: relu(2·3)·(3 + 5) and relu(2·−3)·….
  expectResult(R"(func.func @f(%x: tensor<?x2xf32>, %r: tensor<?xf32>) -> tensor<?x1xf32> {
    %g = llm.weight dense<[[2.0, 0.0]]> : tensor<1x2xf32>
    %u = llm.weight dense<[[1.0, 1.0]]> : tensor<1x2xf32>
    %y = llm.gated_linear relu %x, %g, %u row_scale(%r) : tensor<?x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<?x1xf32>
    return %y : tensor<?x1xf32>
  })",
               {numbers({2, 2}, {3, 5, -3, 5}), numbers({2}, {0.5, 1})}, {2, 1}, {12, 0});
}

TEST(ProductOps, SparseLinear) {
  expectResult(R"(func.func @f(%x: tensor<?x3xf32>, %r: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %v = llm.weight dense<[[2.0, 1.0], [3.0, 0.0]]> : tensor<2x2xf32>
    %i = llm.weight dense<[[2, 0], [1, 0]]> : tensor<2x2xi32>
    %y = llm.sparse_linear %x, %v, %i residual(%r) : tensor<?x3xf32>, tensor<2x2xf32>, tensor<2x2xi32> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({1, 3}, {1, 10, 100}), numbers({1, 2}, {0.5, 0.25})}, {1, 2}, {201.5, 30.25});
}

TEST(ProductOps, SparseLinearRefusesAColumnOutside) {
  Program program(R"(func.func @f(%x: tensor<?x3xf32>) -> tensor<?x1xf32> {
    %v = llm.weight dense<[[2.0]]> : tensor<1x1xf32>
    %i = llm.weight dense<[[3]]> : tensor<1x1xi32>
    %y = llm.sparse_linear %x, %v, %i : tensor<?x3xf32>, tensor<1x1xf32>, tensor<1x1xi32> -> tensor<?x1xf32>
    return %y : tensor<?x1xf32>
  })");
  EXPECT_NE(program.fail({numbers({1, 3}, {1, 2, 3})}).find("expects columns from 0 to 2, but got 3"),
            std::string::npos);
}
