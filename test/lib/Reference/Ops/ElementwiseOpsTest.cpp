#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

TEST(ElementwiseOps, Activations) {
  struct Case {
    const char *kind;
    double low, high; // at −1.5 and 0.7, by Python's math
  };
  for (auto [kind, low, high] : {Case{"relu", 0, 0.7}, Case{"relu2", 0, 0.49}, Case{"silu", -0.273638286, 0.467731441},
                                 Case{"gelu", -0.100210802, 0.530625443}, Case{"gelu_tanh", -0.100428423, 0.530570135},
                                 Case{"gelu_quick", -0.108337802, 0.536893952},
                                 Case{"sigmoid", 0.182425524, 0.668187772}, Case{"tanh", -0.905148254, 0.604367777}}) {
    SCOPED_TRACE(kind);
    const std::string name = kind;
    expectResult("func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {\n  %y = llm.activation " + name +
                     " %x : tensor<?x2xf32>\n  return %y : tensor<?x2xf32>\n}",
                 {numbers({1, 2}, {-1.5, 0.7})}, {1, 2}, {low, high}, 2e-6);
    expectResult("func.func @f(%x: tensor<?x2xf32>, %u: tensor<?x2xf32>) -> tensor<?x2xf32> {\n"
                 "  %y = llm.gated_activation " +
                     name + " %x, %u : tensor<?x2xf32>\n  return %y : tensor<?x2xf32>\n}",
                 {numbers({1, 2}, {-1.5, 0.7}), numbers({1, 2}, {2, -1})}, {1, 2}, {2 * low, -high}, 2e-6);
  }
}

TEST(ElementwiseOps, AddScaleSoftcap) {
  expectResult(R"(func.func @f(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %s = llm.add %a, %b : tensor<?x2xf32>
    %t = llm.scale %s by 0.5 : tensor<?x2xf32>
    %y = llm.softcap %t at 2.0 : tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({1, 2}, {1, 40}), numbers({1, 2}, {1, 40})}, {1, 2}, {0.924234315, 2}, 2e-6); // 2·tanh(1/2)
}

TEST(ElementwiseOps, Multiply) {
  expectResult(R"(func.func @f(%a: tensor<?x2xf32>, %b: tensor<?x1xf32>) -> tensor<?x2xf32> {
    %s = llm.multiply %a, %b : tensor<?x2xf32>, tensor<?x1xf32>
    %y = llm.multiply %s, %a : tensor<?x2xf32>, tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({2, 2}, {1, 2, 3, 4}), numbers({2, 1}, {10, 100})}, {2, 2}, {10, 40, 900, 1600});
}

TEST(ElementwiseOps, SelectRows) {
  expectResult(R"(func.func @f(%x: tensor<?x2xf32>, %r: tensor<?xi32>) -> tensor<?x2xf32> {
    %y = llm.select_rows %x, %r : tensor<?x2xf32>, tensor<?xi32>
    return %y : tensor<?x2xf32>
  })",
               {numbers({2, 2}, {1, 2, 3, 4}), Tensor::ids({1, 0, 9})}, {3, 2}, {3, 4, 1, 2, 3, 4});
}
