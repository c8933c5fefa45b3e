// Expected numbers were made with numpy, in double.
#include "lib/Reference/Math/Attention.h"
#include "lib/Reference/Math/Workers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace mlir::llm::reference;

namespace {
Workers workers(2);

template <typename F> struct Problem {
  std::vector<F> q = {F(0),   F(.3),   F(-.27), F(-.89), F(-.45), F(-.99),
                      F(.06), F(1.34), F(-.49), F(-.62), F(.49),  F(.36)};
  std::vector<F> k = {F(.11), F(-.93), F(-.03), F(.7), F(-1.34), F(-.46), F(-1.9), F(-1.29)};
  std::vector<F> v = {F(-1.84), F(-.24), F(-1.27), F(.27), F(.16),   F(-.19),
                      F(-2.52), F(-.54), F(-.05),  F(.11), F(-1.53), F(-.48)};
  std::vector<uint8_t> visible = {1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1};
  std::vector<int32_t> queryPositions = {1, 2, 3}, keyPositions = {0, 1, 2, 3};
  std::vector<F> slopes = {F(.5), F(.25)};
  AttentionInputs<F> in;

  Problem() {
    in.T = 3, in.H = 2, in.G = 1, in.E = 2, in.EV = 3, in.S = 4;
    in.queries = q.data(), in.keys = k.data(), in.values = v.data();
    in.valueStride = 3, in.visible = visible.data(), in.scale = 0.6;
  }

  void expect(const std::vector<double> &expected) {
    std::vector<F> y(18, F(7));
    attention(workers, in, y.data());
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], expected[i], sizeof(F) == 4 ? 2e-6 : 2e-8) << "element " << i;
  }
};

const std::vector<double> kPlain = {-1.84,         -0.24,        -1.27,        -1.84,        -0.24,
                                    -1.27,         -1.81161988,  -0.310786993, -0.557394737, -0.713478366,
                                    -0.0654499744, -0.335874371, -0.729843261, -0.960055452, -0.296839958,
                                    -0.537109267,  -0.367665291, -0.208237374};

template <typename F> struct Attention : testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Attention, Precisions);
} // namespace

TYPED_TEST(Attention, Plain) { Problem<TypeParam>().expect(kPlain); }

TYPED_TEST(Attention, Softcap) {
  Problem<TypeParam> problem;
  problem.in.softcap = 0.5;
  problem.expect({-1.84, -0.24, -1.27, -1.84, -0.24, -1.27, -1.71504516, -0.286720646, -0.560738905, -0.898703147,
                  -0.104270498, -0.396707995, -0.865028503, -0.80870069, -0.256589058, -0.547511324, -0.465686261,
                  -0.224950392});
}

TYPED_TEST(Attention, Slopes) {
  Problem<TypeParam> problem;
  problem.in.slopes = problem.slopes;
  problem.in.queryPositions = problem.queryPositions.data();
  problem.in.keyPositions = problem.keyPositions.data();
  problem.expect({-1.84, -0.24, -1.27, -1.84, -0.24, -1.27, -1.98838268, -0.379040336, -0.329440113, -0.787349082,
                  -0.0891528094, -0.284793544, -0.550828421, -1.16142155, -0.350310627, -0.598280912, -0.502082699,
                  -0.226676474});
}

TYPED_TEST(Attention, NothingVisibleGivesZeros) {
  Problem<TypeParam> problem;
  for (size_t s = 0; s < 4; ++s)
    problem.visible[s] = 0;
  auto expected = kPlain;
  for (size_t i = 0; i < 6; ++i)
    expected[i] = 0;
  problem.expect(expected);
}

TYPED_TEST(Attention, HiddenGarbageDoesNotShow) {
  using F = TypeParam;
  Problem<F> problem;
  // Key 0 is hidden from the last query only, key 3 from the first two: make
  // the last query alone see what is sound.
  const F nan = std::numeric_limits<F>::quiet_NaN();
  for (size_t e = 0; e < 2; ++e)
    problem.k[e] = nan;
  problem.v[0] = nan, problem.v[1] = std::numeric_limits<F>::infinity();
  std::vector<F> y(18);
  attention(workers, problem.in, y.data());
  for (size_t i = 12; i < 18; ++i)
    EXPECT_NEAR(y[i], kPlain[i], 2e-6);
}

TYPED_TEST(Attention, ValueHeadsItsKey) {
  using F = TypeParam;
  // One latent head of four numbers, of which the value is the first two. A
  // query of zeros takes the mean.
  const std::vector<F> keys = {1, 2, 9, 9, 3, 6, 9, 9}, queries(4, F(0));
  const std::vector<uint8_t> visible = {1, 1};
  AttentionInputs<F> in;
  in.T = 1, in.H = 1, in.G = 1, in.E = 4, in.EV = 2, in.S = 2;
  in.queries = queries.data(), in.keys = in.values = keys.data();
  in.valueStride = 4, in.visible = visible.data(), in.scale = 1;
  std::vector<F> y(2);
  attention(workers, in, y.data());
  EXPECT_NEAR(y[0], 2, 1e-6);
  EXPECT_NEAR(y[1], 4, 1e-6);
}

TYPED_TEST(Attention, ManyQueriesOverGroups) {
  using F = TypeParam;
  // 70 queries pass the tile of 64. Keys of zeros make every weight equal:
  // query t takes the mean of values 0 … t, t / 2 for group 0 and its negative
  // for group 1.
  const size_t T = 70, H = 4, G = 2, E = 3;
  std::vector<F> queries(T * H * E, F(1)), keys(T * G * E, F(0)), values(T * G);
  std::vector<uint8_t> visible(T * T);
  for (size_t s = 0; s < T; ++s)
    for (size_t g = 0; g < G; ++g)
      values[s * G + g] = g == 0 ? F(s) : -F(s);
  for (size_t t = 0; t < T; ++t)
    for (size_t s = 0; s <= t; ++s)
      visible[t * T + s] = 1;
  AttentionInputs<F> in;
  in.T = T, in.H = H, in.G = G, in.E = E, in.EV = 1, in.S = T;
  in.queries = queries.data(), in.keys = keys.data(), in.values = values.data();
  in.valueStride = 1, in.visible = visible.data(), in.scale = 1;
  std::vector<F> y(T * H);
  attention(workers, in, y.data());
  for (size_t t = 0; t < T; ++t)
    for (size_t h = 0; h < H; ++h)
      EXPECT_NEAR(y[t * H + h], (h < 2 ? 0.5 : -0.5) * double(t), 1e-5);
}
