#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

/// Evaluates an expression `%y` of type `type` over a weight %w of 1 … 6 as a 2x3 matrix.
static void expectExpression(const std::string &body, const std::string &type, llvm::ArrayRef<int64_t> shape,
                             const std::vector<double> &expected) {
  expectResult("func.func @f() -> " + type +
                   " {\n  %w = llm.weight dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>\n  " + body +
                   "\n  return %y : " + type + "\n}",
               {}, shape, expected);
}

TEST(WeightOps, Weight) {
  expectExpression("%y = llm.relayout %w : tensor<2x3xf32> -> tensor<2x3xf32>", "tensor<2x3xf32>", {2, 3},
                   {1, 2, 3, 4, 5, 6});
}

TEST(WeightOps, Slice) {
  expectExpression("%y = llm.slice %w 1 to 2 axis 0 : tensor<2x3xf32>", "tensor<1x3xf32>", {1, 3}, {4, 5, 6});
  expectExpression("%y = llm.slice %w 1 to 3 axis 1 : tensor<2x3xf32>", "tensor<2x2xf32>", {2, 2}, {2, 3, 5, 6});
}

TEST(WeightOps, Concat) {
  expectExpression("%v = llm.weight dense<[[7.0], [8.0]]> : tensor<2x1xf32>\n"
                   "  %y = llm.concat %w, %v axis 1 : tensor<2x3xf32>, tensor<2x1xf32>",
                   "tensor<2x4xf32>", {2, 4}, {1, 2, 3, 7, 4, 5, 6, 8});
}

TEST(WeightOps, Gather) {
  expectExpression("%i = llm.weight dense<[2, 0, 2]> : tensor<3xi32>\n"
                   "  %y = llm.gather %w, %i axis 1 : tensor<2x3xf32>, tensor<3xi32>",
                   "tensor<2x3xf32>", {2, 3}, {3, 1, 3, 6, 4, 6});
}

TEST(WeightOps, ArgsortKeepsTheOrderOfEqualKeys) {
  expectExpression("%k = llm.weight dense<[1, 0, 1, 0, -2, 1]> : tensor<6xi32>\n"
                   "  %o = llm.argsort %k : tensor<6xi32>\n"
                   "  %v = llm.weight dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<1x6xf32>\n"
                   "  %y = llm.gather %v, %o axis 1 : tensor<1x6xf32>, tensor<6xi32>",
                   "tensor<1x6xf32>", {1, 6}, {5, 2, 4, 1, 3, 6});
}

TEST(WeightOps, GatherRefusesAnIndexOutside) {
  Program p(R"(func.func @f(%i: tensor<?xi32>) -> tensor<?x3xf32> {
    %w = llm.weight dense<1.0> : tensor<2x3xf32>
    %y = llm.gather %w, %i axis 0 : tensor<2x3xf32>, tensor<?xi32>
    return %y : tensor<?x3xf32>
  })");
  EXPECT_NE(p.fail({Tensor::ids({2})}).find("expects an index from 0 to 1, but got 2"), std::string::npos);
}

TEST(WeightOps, ScaleAxis) {
  expectExpression("%s = llm.weight dense<[1.0, 10.0, 100.0]> : tensor<3xf32>\n"
                   "  %y = llm.scale_axis %w, %s axis 1 : tensor<2x3xf32>, tensor<3xf32>",
                   "tensor<2x3xf32>", {2, 3}, {1, 20, 300, 4, 50, 600});
  expectExpression("%s = llm.weight dense<[1.0, 10.0]> : tensor<2xf32>\n"
                   "  %y = llm.scale_axis %w, %s axis 0 : tensor<2x3xf32>, tensor<2xf32>",
                   "tensor<2x3xf32>", {2, 3}, {1, 2, 3, 40, 50, 60});
}

TEST(WeightOps, Offset) {
  expectExpression("%y = llm.offset %w by 1.5 : tensor<2x3xf32> -> tensor<2x3xf32>", "tensor<2x3xf32>", {2, 3},
                   {2.5, 3.5, 4.5, 5.5, 6.5, 7.5});
}

TEST(WeightOps, TransposeAndReshape) {
  expectExpression("%y = llm.transpose %w [1, 0] : tensor<2x3xf32>", "tensor<3x2xf32>", {3, 2}, {1, 4, 2, 5, 3, 6});
  expectExpression("%r = llm.reshape %w : tensor<2x3xf32> -> tensor<2x1x3xf32>\n"
                   "  %y = llm.transpose %r [2, 0, 1] : tensor<2x1x3xf32>",
                   "tensor<3x2x1xf32>", {3, 2, 1}, {1, 4, 2, 5, 3, 6});
}

TEST(WeightOps, QuantizeDequantize) {
  // Largest magnitude 12.7 → scale 0.1: 1.23 → 12.3 → 12, −0.25 → −2.5 → −2 (ties to even).
  expectResult(R"(func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %q = llm.quantize %x : tensor<?x3xf32> -> tensor<?x3x!llm.q<i8, *:f32>>
    %y = llm.dequantize %q : tensor<?x3x!llm.q<i8, *:f32>> -> tensor<?x3xf32>
    return %y : tensor<?x3xf32>
  })",
               {numbers({1, 3}, {12.7, 1.23, -0.7501})}, {1, 3}, {12.7, 1.2, -0.8}, 1e-6);
  // Half the range: scale 0.05, so 12.7 saturates at 6.35.
  expectResult(R"(func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %q = llm.quantize %x clip(0.5) : tensor<?x3xf32> -> tensor<?x3x!llm.q<i8, *:f32>>
    %y = llm.dequantize %q : tensor<?x3x!llm.q<i8, *:f32>> -> tensor<?x3xf32>
    return %y : tensor<?x3xf32>
  })",
               {numbers({1, 3}, {12.7, 1.23, -0.7501})}, {1, 3}, {6.35, 1.25, -0.75}, 1e-6);
}

TEST(WeightOps, SlicesOfActivationsWithDynamicRows) {
  expectResult(R"(func.func @f(%x: tensor<?x3x1xf32>) -> tensor<?x2x1xf32> {
    %y = llm.slice %x 1 to 3 axis 1 : tensor<?x3x1xf32>
    return %y : tensor<?x2x1xf32>
  })",
               {numbers({2, 3, 1}, {1, 2, 3, 4, 5, 6})}, {2, 2, 1}, {2, 3, 5, 6});
}
