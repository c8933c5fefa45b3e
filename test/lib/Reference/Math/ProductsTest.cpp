// Products of small integers are exact, so every instruction set must give the
// very numbers of a triple loop.
#include "lib/Reference/Math/Products.h"
#include "lib/Reference/Math/Workers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace mlir::llm::reference;

namespace {
template <typename F> std::vector<F> integers(size_t count, unsigned seed) {
  std::vector<F> values(count);
  for (F &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = F(int(seed >> 24) % 9 - 4);
  }
  return values;
}

template <typename F> void checkLevels() {
  for (const ProductKernels<F> *kernels : supportedKernels<F>()) {
    SCOPED_TRACE(kernels->name);
    struct Shape {
      size_t M, N, K;
    };
    for (auto [M, N, K] : {Shape{1, 1, 1}, Shape{1, 33, 70}, Shape{7, 5, 3}, Shape{17, 40, 129}, Shape{64, 1, 64}}) {
      // Rows lie further apart than they are long, as the heads of attention
      // do.
      const size_t ldx = K + 3, ldw = K + 1, ldv = N + 2, ldy = N + 5;
      const auto x = integers<F>(M * ldx, 1), w = integers<F>(N * ldw, 2), v = integers<F>(K * ldv, 3);
      std::vector<F> y(M * ldy, F(-99)), z(M * ldy, F(-99));
      kernels->timesTransposed(x.data(), ldx, w.data(), ldw, y.data(), ldy, M, N, K);
      kernels->times(x.data(), ldx, v.data(), ldv, z.data(), ldy, M, N, K);
      for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < ldy; ++n) {
          F transposed = n < N ? 0 : -99, plain = transposed;
          for (size_t k = 0; n < N && k < K; ++k) {
            transposed += x[m * ldx + k] * w[n * ldw + k];
            plain += x[m * ldx + k] * v[k * ldv + n];
          }
          ASSERT_EQ(y[m * ldy + n], transposed) << M << "x" << N << "x" << K << " at " << m << "," << n;
          ASSERT_EQ(z[m * ldy + n], plain) << M << "x" << N << "x" << K << " at " << m << "," << n;
        }
    }
  }
}

/// The bits of a row's exponentials do not depend on where it lies in memory.
template <typename F> void checkPlacement() {
  for (const ProductKernels<F> *kernels : supportedKernels<F>()) {
    SCOPED_TRACE(kernels->name);
    std::vector<F> first, sums;
    for (size_t offset = 0; offset < 17; ++offset) {
      std::vector<F> memory(200);
      for (size_t i = 0; i < 131; ++i)
        memory[offset + i] = F(i % 23) / 7 - F(i) / 50;
      sums.push_back(kernels->exponentials(memory.data() + offset, 131, F(0.125)));
      std::vector<F> row(memory.begin() + offset, memory.begin() + offset + 131);
      if (first.empty())
        first = row;
      EXPECT_EQ(row, first);
      EXPECT_EQ(sums.back(), sums.front());
    }
  }
}

template <typename F> void checkExponentials(double tolerance) {
  for (const ProductKernels<F> *kernels : supportedKernels<F>()) {
    SCOPED_TRACE(kernels->name);
    std::vector<F> x;
    for (int i = 0; i < 37; ++i)
      x.push_back(F(i) / 4 - 9);
    std::vector<F> y = x;
    const F sum = kernels->exponentials(y.data(), ptrdiff_t(y.size()), F(0.25));
    double expected = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i] / std::exp(double(x[i]) - 0.25), 1, tolerance);
      expected += std::exp(double(x[i]) - 0.25);
    }
    EXPECT_NEAR(sum / expected, 1, tolerance);
  }
}
} // namespace

TEST(Products, EveryLevelF32) { checkLevels<float>(); }
TEST(Products, EveryLevelF64) { checkLevels<double>(); }
TEST(Products, ExponentialsF32) { checkExponentials<float>(4e-7); }
TEST(Products, ExponentialsF64) { checkExponentials<double>(4e-15); }

TEST(Products, ExponentialsAreTheSameAnywhere) {
  checkPlacement<float>();
  checkPlacement<double>();
}

TEST(Products, LinearCutsRowsIntoBlocks) {
  Workers workers(2);
  const size_t T = 3, N = 2001, K = 19;
  const auto x = integers<float>(T * K, 5), w = integers<float>(N * K, 6);
  std::vector<float> y(T * N);
  linear(workers, x.data(), w.data(), y.data(), T, N, K);
  for (size_t t = 0; t < T; ++t)
    for (size_t n = 0; n < N; ++n) {
      float sum = 0;
      for (size_t k = 0; k < K; ++k)
        sum += x[t * K + k] * w[n * K + k];
      ASSERT_EQ(y[t * N + n], sum);
    }
}
