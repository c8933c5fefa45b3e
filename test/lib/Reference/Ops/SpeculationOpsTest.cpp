#include "lib/Reference/Math/Sample.h"
#include "test/lib/Reference/Evaluate.h"

#include <bit>

using namespace mlir::llm::reference;

/// The eight words of llm.sample.
static Tensor words(const SampleParameters &p) {
  auto number = [](float value) { return std::bit_cast<int32_t>(value); };
  return Tensor::ids({int32_t(p.seedLow), int32_t(p.seedHigh), number(p.temperature), int32_t(p.topK), number(p.topP),
                      number(p.minP), number(p.repeatPenalty), int32_t(p.repeatLastN)});
}

TEST(SpeculationOps, SampleUsesParametersHistoryAndPosition) {
  Program p(
      R"(func.func @f(%z: tensor<?x4xf32>, %w: tensor<8xi32>, %h: tensor<6xi32>, %p: tensor<?xi32>) -> tensor<?xi32> {
    %t = llm.sample %z, %w, %h at %p : tensor<?x4xf32>, tensor<6xi32>
    return %t : tensor<?xi32>
  })");
  SampleParameters parameters;
  parameters.repeatPenalty = 4, parameters.repeatLastN = 1;
  // Row 0 draws for position 1 (token 3 before it), row 1 for position 2 (token 0 before it).
  const auto history = Tensor::ids({3, 0, 1, 1, 1, 1});
  auto results = p.run({numbers({2, 4}, {1, 2, 0, 4, 5, 3, 0, 0}), words(parameters), history, Tensor::ids({1, 2})});
  ASSERT_EQ(results.size(), 1u);
  expectInts(results[0], {1, 1});
  // With a temperature, the very draw of the numerics.
  parameters.temperature = 1.5f, parameters.seedLow = 9, parameters.seedHigh = 2, parameters.topK = 3;
  parameters.topP = 0.9f, parameters.minP = 0.01f;
  const std::vector<float> row = {1, 1.5f, 0.5f, 1.25f};
  std::vector<double> rows;
  std::vector<int32_t> positions, expected;
  for (int32_t position = 1; position < 6; ++position) {
    rows.insert(rows.end(), row.begin(), row.end());
    positions.push_back(position);
    const std::vector<int32_t> before = {3, 0, 1, 1, 1};
    expected.push_back(sample<float>(row, parameters, std::span(before).first(size_t(position)), uint32_t(position)));
  }
  results = p.run({numbers({5, 4}, rows), words(parameters), history, Tensor::ids(positions)});
  ASSERT_EQ(results.size(), 1u);
  expectInts(results[0], expected);
}

TEST(SpeculationOps, TreeMask) {
  Program p(R"(func.func @f(%p: tensor<?xi32>) -> (tensor<?x2xi32>, tensor<?xi32>) {
    %m, %d = llm.tree_mask %p : tensor<?xi32>
    return %m, %d : tensor<?x2xi32>, tensor<?xi32>
  })");
  auto results = p.run({Tensor::ids({-1, 0, 0, 2})});
  ASSERT_EQ(results.size(), 2u);
  expectInts(results[0], {1, 0, 3, 0, 5, 0, 13, 0});
  expectInts(results[1], {0, 1, 1, 2});
  EXPECT_NE(p.fail({Tensor::ids({-1, 1})}).find("each after its parent, but got parent 1 of node 1"),
            std::string::npos);
  EXPECT_NE(p.fail({Tensor::ids(std::vector<int32_t>(65, -1))}).find("at most 64 nodes"), std::string::npos);
}

TEST(SpeculationOps, TreeMaskFromABase) {
  Program p(R"(func.func @f(%p: tensor<?xi32>, %b: tensor<1xi32>) -> tensor<?xi32> {
    %m, %d = llm.tree_mask %p base(%b) : tensor<?xi32>
    return %d : tensor<?xi32>
  })");
  auto results = p.run({Tensor::ids({-1, 0, 0, 2}), Tensor::ids({7})});
  ASSERT_EQ(results.size(), 1u);
  expectInts(results[0], {7, 8, 8, 9});
}

TEST(SpeculationOps, TreeVerify) {
  Program p(
      R"(func.func @f(%z: tensor<?x3xf32>, %t: tensor<?xi32>, %p: tensor<?xi32>, %w: tensor<8xi32>, %h: tensor<8xi32>,
                            %b: tensor<1xi32>) -> (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>) {
    %a, %n, %bonus = llm.tree_verify %z, %t, %p, %w, %h base %b : tensor<?x3xf32>, tensor<8xi32>
    return %a, %n, %bonus : tensor<?xi32>, tensor<1xi32>, tensor<1xi32>
  })");
  const auto tokens = Tensor::ids({1, 1, 2, 0}), parents = Tensor::ids({-1, 0, 0, 2});
  const auto history = Tensor::ids({0, 0, 1, 0, 0, 0, 0, 0});
  // Node 0 wants 2 (node 2), node 2 wants 0 (node 3), node 3 wants 1.
  const auto logits = numbers({4, 3}, {0, 1, 9, 9, 0, 0, 3, 1, 1, 0, 2, 1});
  auto results = p.run({logits, tokens, parents, words({}), history, Tensor::ids({2})});
  ASSERT_EQ(results.size(), 3u);
  expectInts(results[0], {0, 2, 3, -1});
  expectInts(results[1], {3});
  expectInts(results[2], {1});
}
