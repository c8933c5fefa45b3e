// Expected numbers follow from the definitions by hand; exponentials by Python's math.
#include "test/lib/Reference/Evaluate.h"

using namespace mlir::llm::reference;

static void expectRoute(const std::string &options, const std::vector<double> &logits, int64_t X,
                        const std::vector<int32_t> &ids, const std::vector<double> &weights) {
  const std::string type = "tensor<?x" + std::to_string(X) + "xf32>";
  const std::string k = std::to_string(ids.size());
  Program program("func.func @f(%x: " + type + ") -> (tensor<?x" + k + "xi32>, tensor<?x" + k + "xf32>) {\n" +
                  "  %b = llm.weight dense<[0.0, 0.9, 0.0, 0.0]> : tensor<4xf32>\n" + "  %i, %w = llm.route %x top " +
                  k + options + " : " + type + "\n" + "  return %i, %w : tensor<?x" + k + "xi32>, tensor<?x" + k +
                  "xf32>\n}");
  const auto results = program.run({numbers({1, X}, logits)});
  ASSERT_EQ(results.size(), 2u);
  expectInts(results[0], ids);
  expectNear(results[1], weights, 2e-6);
}

TEST(ExpertOps, RouteSoftmax) {
  // Logits ln 1 … ln 4: scores 0.1, 0.2, 0.3, 0.4.
  const std::vector<double> logits = {0, 0.693147181, 1.098612289, 1.386294361};
  expectRoute("", logits, 4, {3, 2}, {0.4, 0.3});
  expectRoute(" normalise", logits, 4, {3, 2}, {4 / 7.0, 3 / 7.0});
  expectRoute(" normalise scale(2.0)", logits, 4, {3, 2}, {8 / 7.0, 6 / 7.0});
}

TEST(ExpertOps, RouteSigmoidWithBias) {
  // The bias decides who is chosen, not how much it weighs.
  expectRoute(" score sigmoid bias(%b : tensor<4xf32>)", {0, 0, 1.098612289, -9}, 4, {1, 2}, {0.5, 0.75});
}

TEST(ExpertOps, RouteTiesToTheLowerId) { expectRoute("", {1, 1, 1, 1}, 4, {0, 1}, {0.25, 0.25}); }

TEST(ExpertOps, RouteInGroups) {
  // Groups (0, 1) and (2, 3): the first has the best expert, but the second the better two.
  expectRoute(" score sigmoid groups(2) top_groups(1)", {2, -5, 1, 1}, 4, {2, 3}, {0.731058579, 0.731058579});
  expectRoute(" score sigmoid groups(2) top_groups(1) by_best", {2, -5, 1, 1}, 4, {0, 1}, {0.880797078, 0.006692851});
}

TEST(ExpertOps, ExpertLinear) {
  const std::string weights = R"(%w = llm.weight dense<[[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]]]> : tensor<3x1x2xf32>
    %b = llm.weight dense<[[0.0], [0.0], [100.0]]> : tensor<3x1xf32>
  )";
  expectResult("func.func @f(%x: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> tensor<?x2x1xf32> {\n" + weights +
                   R"(%y = llm.expert_linear %x, %i, %w bias(%b : tensor<3x1xf32>)
        : tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x1x2xf32> -> tensor<?x2x1xf32>
    return %y : tensor<?x2x1xf32>
  })",
               {numbers({2, 2}, {1, 2, 3, 4}), Tensor::of<int32_t>({2, 2}, {2, 0, 1, 2})}, {2, 2, 1}, {103, 1, 4, 107});
  // Every chosen expert has an input of its own; results are weighed, summed and added to the residual.
  expectResult("func.func @f(%x: tensor<?x2x2xf32>, %i: tensor<?x2xi32>, %p: tensor<?x2xf32>, %r: tensor<?x1xf32>) -> "
               "tensor<?x1xf32> {\n" +
                   weights +
                   R"(%y = llm.expert_linear %x, %i, %w combine(%p : tensor<?x2xf32>) residual(%r : tensor<?x1xf32>)
        : tensor<?x2x2xf32>, tensor<?x2xi32>, tensor<3x1x2xf32> -> tensor<?x1xf32>
    return %y : tensor<?x1xf32>
  })",
               {numbers({1, 2, 2}, {1, 2, 3, 4}), Tensor::of<int32_t>({1, 2}, {1, 2}), numbers({1, 2}, {0.5, 2}),
                numbers({1, 1}, {1000})},
               {1, 1}, {1015}); // 1000 + 0.5·2 + 2·7
}

TEST(ExpertOps, ExpertLinearRefusesAnUnknownExpert) {
  Program program(R"(func.func @f(%x: tensor<?x1xf32>, %i: tensor<?x1xi32>) -> tensor<?x1x1xf32> {
    %w = llm.weight dense<1.0> : tensor<2x1x1xf32>
    %y = llm.expert_linear %x, %i, %w : tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x1x1xf32> -> tensor<?x1x1xf32>
    return %y : tensor<?x1x1xf32>
  })");
  EXPECT_NE(program.fail({numbers({1, 1}, {1}), Tensor::of<int32_t>({1, 1}, {2})})
                .find("expects experts from 0 to 1, but got 2"),
            std::string::npos);
}
