// Expected numbers were made with numpy and Python's math, in double.
#include "lib/Reference/Math/Rows.h"
#include "lib/Reference/Math/Workers.h"

#include <gtest/gtest.h>
#include <vector>

using namespace mlir::llm::reference;

namespace {
Workers workers(2);
const std::vector<double> kX = {1, -2, 3, 0.5, 0.25, 4, -1, 2}; // two rows
const std::vector<double> kGamma = {1, 2, 0.5, -1}, kBeta = {.1, .2, .3, .4};

template <typename F> std::vector<F> as(const std::vector<double> &values) { return {values.begin(), values.end()}; }

template <typename F> void expectNear(const std::vector<F> &got, const std::vector<double> &expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], sizeof(F) == 4 ? 2e-6 : 2e-8) << "element " << i;
}

template <typename F> struct Rows : testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Rows, Precisions);
} // namespace

TYPED_TEST(Rows, RmsNorm) {
  using F = TypeParam;
  const auto x = as<F>(kX), gamma = as<F>(kGamma);
  std::vector<F> y(8);
  rmsNorm<F>(workers, x.data(), y.data(), 2, 4, gamma, 1e-5, 4);
  expectNear(y, {0.529812199, -2.1192488, 0.794718299, -0.2649061, 0.108946839, 3.48629884, -0.217893677, -0.87157471});
  // As if the row had been six long: the mean divides by six.
  rmsNorm<F>(workers, x.data(), y.data(), 1, 4, {}, 1e-2, 6);
  expectNear(std::vector<F>(y.begin(), y.begin() + 4), {0.647523908, -1.29504782, 1.94257172, 0.323761954});
}

TYPED_TEST(Rows, LayerNorm) {
  using F = TypeParam;
  const auto x = as<F>(kX), gamma = as<F>(kGamma), beta = as<F>(kBeta);
  std::vector<F> y(8);
  layerNorm<F>(workers, x.data(), y.data(), 2, 4, gamma, beta, 1e-5, 4);
  expectNear(y,
             {0.31055839, -2.74781746, 0.966768235, 0.47018613, -0.464474939, 3.0555791, -0.314281551, 0.0347515104});
  layerNorm<F>(workers, x.data(), y.data(), 2, 4, {}, {}, 1e-5, 6);
  expectNear(y,
             {0.393158276, -1.62879857, 1.74112951, 0.0561654681, -0.377245904, 1.88622952, -1.13173771, 0.679042627});
}

TYPED_TEST(Rows, Softmax) {
  using F = TypeParam;
  auto x = as<F>(kX);
  EXPECT_NEAR(logSumExp<F>(std::span<const F>(x.data(), 4)), 3.20225345, 1e-6);
  EXPECT_NEAR(logSumExp<F>(std::span<const F>(x.data() + 4, 4)), 4.15322823, 1e-6);
  softmax(workers, x.data(), x.data(), 2, 4); // in place
  expectNear(
      x, {0.11055375, 0.00550414713, 0.816887863, 0.0670542391, 0.0201766712, 0.85793389, 0.00578071308, 0.116108726});
}

TYPED_TEST(Rows, Nonlinearities) {
  using F = TypeParam;
  struct Case {
    Nonlinearity kind;
    double atMinusOneAndHalf, atSevenTenths;
  };
  for (auto [kind, low, high] :
       {Case{Nonlinearity::Relu, 0, 0.7}, Case{Nonlinearity::Relu2, 0, 0.49},
        Case{Nonlinearity::Silu, -0.273638286, 0.467731441}, Case{Nonlinearity::Gelu, -0.100210802, 0.530625443},
        Case{Nonlinearity::GeluTanh, -0.100428423, 0.530570135},
        Case{Nonlinearity::GeluQuick, -0.108337802, 0.536893952}, Case{Nonlinearity::Sigmoid, 0.182425524, 0.668187772},
        Case{Nonlinearity::Tanh, -0.905148254, 0.604367777}}) {
    const std::vector<F> gate = {F(-1.5), F(0.7)}, up = {F(2), F(-3)};
    std::vector<F> y(2);
    activate<F>(workers, kind, gate.data(), nullptr, y.data(), 2);
    expectNear(y, {low, high});
    activate<F>(workers, kind, gate.data(), up.data(), y.data(), 2);
    expectNear(y, {2 * low, -3 * high});
  }
}

TYPED_TEST(Rows, NonlinearitiesDoNotOverflow) {
  using F = TypeParam;
  for (F big : {F(-1e4), F(1e4)})
    for (auto kind : {Nonlinearity::Silu, Nonlinearity::Gelu, Nonlinearity::GeluTanh, Nonlinearity::GeluQuick})
      EXPECT_EQ(nonlinearity(kind, big), big > 0 ? big : F(0));
}

TYPED_TEST(Rows, Hadamard) {
  using F = TypeParam;
  // H4 · (1, 2, 3, 4) / 2 and H4 · (1, 0, 0, 0) / 2, written out.
  const std::vector<F> x = {1, 2, 3, 4, 1, 0, 0, 0}, signs = {1, -1, 1, 1, -1, 1, 1, 1};
  std::vector<F> y(8);
  hadamard<F>(workers, x.data(), y.data(), 1, 8, 4, {});
  expectNear(y, {5, -1, -2, 0, .5, .5, .5, .5});
  hadamard<F>(workers, x.data(), y.data(), 1, 8, 4, signs);
  expectNear(y, {3, 1, -4, 2, -.5, -.5, -.5, -.5}); // H4 · (1, −2, 3, 4) and of (−1, 0, 0, 0)
  hadamard<F>(workers, y.data(), y.data(), 1, 8, 4, signs, /*inverse=*/true);
  expectNear(y, {1, 2, 3, 4, 1, 0, 0, 0});
}

TYPED_TEST(Rows, Rope) {
  using F = TypeParam;
  const std::vector<F> x = {1, 2, 3, 4, 5, 6};
  const std::vector<double> frequencies = {.5, .1};
  const std::vector<int32_t> positions = {3};
  std::vector<F> y(6);
  rope<F>(workers, x.data(), y.data(), positions, 1, 6, frequencies,
          /*interleaved=*/false, 1.25);
  expectNear(y, {-3.6521847, 0.91074019, 1.51213324, 5.51548296, 5, 6});
  rope<F>(workers, x.data(), y.data(), positions, 1, 6, frequencies,
          /*interleaved=*/true, 1.25);
  expectNear(y, {-2.40531596, 1.42371174, 2.1049108, 5.88488322, 5, 6});
}

TYPED_TEST(Rows, RopeOfTwoHeadsAtTwoPositions) {
  using F = TypeParam;
  // A quarter turn a position: (a, b) → (−b, a); position 0 leaves it.
  const std::vector<F> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> frequencies = {1.57079632679489662};
  const std::vector<int32_t> positions = {0, 1};
  std::vector<F> y(8);
  rope<F>(workers, x.data(), y.data(), positions, 2, 2, frequencies, false, 1);
  expectNear(y, {1, 2, 3, 4, -6, 5, -8, 7});
}
