#include "lib/Reference/Math/Rows.h"

#include "lib/Reference/Math/Workers.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mlir::llm::reference {

template <typename F> double rmsScale(std::span<const F> row, double eps, size_t count) {
  double sum = 0;
  for (F value : row)
    sum += double(value) * double(value);
  return 1 / std::sqrt(sum / double(count) + eps);
}

template <typename F>
void rmsNorm(Workers &workers, const F *x, F *y, size_t T, size_t D, std::span<const F> gamma, double eps,
             size_t count) {
  workers.ranges(T, 16, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const F *row = x + t * D;
      const F factor = F(rmsScale(std::span(row, D), eps, count));
      for (size_t i = 0; i < D; ++i)
        y[t * D + i] = gamma.empty() ? row[i] * factor : row[i] * factor * gamma[i];
    }
  });
}

template <typename F>
void layerNorm(Workers &workers, const F *x, F *y, size_t T, size_t D, std::span<const F> gamma,
               std::span<const F> beta, double eps, size_t count) {
  workers.ranges(T, 16, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const F *row = x + t * D;
      double sum = 0;
      for (size_t i = 0; i < D; ++i)
        sum += double(row[i]);
      const double mean = sum / double(count);
      double squares = (double(count) - double(D)) * mean * mean; // the zeros past D
      for (size_t i = 0; i < D; ++i)
        squares += (double(row[i]) - mean) * (double(row[i]) - mean);
      const double factor = 1 / std::sqrt(squares / double(count) + eps);
      for (size_t i = 0; i < D; ++i) {
        const F scaled = F((double(row[i]) - mean) * factor);
        y[t * D + i] = (gamma.empty() ? scaled : scaled * gamma[i]) + (beta.empty() ? F(0) : beta[i]);
      }
    }
  });
}

template <typename F> void softmax(Workers &workers, const F *x, F *y, size_t T, size_t N) {
  workers.ranges(T, 4, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const F *row = x + t * N;
      const F top = *std::max_element(row, row + N);
      double sum = 0;
      for (size_t i = 0; i < N; ++i) {
        y[t * N + i] = std::exp(row[i] - top);
        sum += double(y[t * N + i]);
      }
      const F factor = F(1 / sum);
      for (size_t i = 0; i < N; ++i)
        y[t * N + i] *= factor;
    }
  });
}

template <typename F> double logSumExp(std::span<const F> row) {
  const F top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (F value : row)
    sum += double(std::exp(value - top));
  return double(top) + std::log(sum);
}

namespace {
template <typename F> F evaluate(Nonlinearity kind, F x) {
  switch (kind) {
  case Nonlinearity::Relu:
    return x > 0 ? x : F(0);
  case Nonlinearity::Relu2:
    return x > 0 ? x * x : F(0);
  case Nonlinearity::Silu:
    return x / (1 + std::exp(-x));
  case Nonlinearity::Gelu:
    return F(0.5) * x * (1 + std::erf(x * F(M_SQRT1_2)));
  case Nonlinearity::GeluTanh:
    return F(0.5) * x * (1 + std::tanh(F(M_SQRT1_2 * M_2_SQRTPI) * (x + F(0.044715) * x * x * x)));
  case Nonlinearity::GeluQuick:
    return x / (1 + std::exp(F(-1.702) * x));
  case Nonlinearity::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Nonlinearity::Tanh:
    return std::tanh(x);
  }
  return x;
}
} // namespace

double nonlinearity(Nonlinearity kind, double x) { return evaluate(kind, x); }
float nonlinearity(Nonlinearity kind, float x) { return evaluate(kind, x); }

template <typename F> void activate(Workers &workers, Nonlinearity kind, const F *gate, const F *up, F *y, size_t n) {
  workers.ranges(n, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      y[i] = up ? evaluate(kind, gate[i]) * up[i] : evaluate(kind, gate[i]);
  });
}

template <typename F>
void hadamard(Workers &workers, const F *x, F *y, size_t rows, size_t width, size_t block, std::span<const F> signs,
              bool inverse) {
  const F norm = F(1 / std::sqrt(double(block)));
  workers.ranges(rows, 16, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      F *row = y + r * width;
      for (size_t i = 0; i < width; ++i)
        row[i] = x[r * width + i] * (signs.empty() || inverse ? F(1) : signs[i]);
      // Butterflies: H(2n) = [[H, H], [H, -H]].
      for (size_t half = 1; half < block; half *= 2)
        for (size_t base = 0; base < width; base += 2 * half)
          for (size_t i = base; i < base + half; ++i) {
            const F a = row[i], b = row[i + half];
            row[i] = a + b;
            row[i + half] = a - b;
          }
      for (size_t i = 0; i < width; ++i)
        row[i] *= norm * (signs.empty() || !inverse ? F(1) : signs[i]);
    }
  });
}

template <typename F>
void rope(Workers &workers, const F *x, F *y, std::span<const int32_t> positions, size_t H, size_t E,
          std::span<const double> frequencies, bool interleaved, double scale) {
  const size_t P = frequencies.size();
  workers.ranges(positions.size(), 8, [&](size_t begin, size_t end) {
    std::vector<F> cosine(P), sine(P);
    for (size_t t = begin; t < end; ++t) {
      for (size_t i = 0; i < P; ++i) {
        const double angle = double(positions[t]) * frequencies[i];
        cosine[i] = F(std::cos(angle) * scale);
        sine[i] = F(std::sin(angle) * scale);
      }
      for (size_t h = 0; h < H; ++h) {
        const F *from = x + (t * H + h) * E;
        F *to = y + (t * H + h) * E;
        for (size_t i = 0; i < P; ++i) {
          const size_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + P;
          const F a = from[first], b = from[second];
          to[first] = a * cosine[i] - b * sine[i];
          to[second] = a * sine[i] + b * cosine[i];
        }
        if (to != from)
          std::copy(from + 2 * P, from + E, to + 2 * P);
      }
    }
  });
}

#define SPRIG_INSTANTIATE(F)                                                                                           \
  template double rmsScale<F>(std::span<const F>, double, size_t);                                                     \
  template void rmsNorm<F>(Workers &, const F *, F *, size_t, size_t, std::span<const F>, double, size_t);             \
  template void layerNorm<F>(Workers &, const F *, F *, size_t, size_t, std::span<const F>, std::span<const F>,        \
                             double, size_t);                                                                          \
  template void softmax<F>(Workers &, const F *, F *, size_t, size_t);                                                 \
  template double logSumExp<F>(std::span<const F>);                                                                    \
  template void activate<F>(Workers &, Nonlinearity, const F *, const F *, F *, size_t);                               \
  template void hadamard<F>(Workers &, const F *, F *, size_t, size_t, size_t, std::span<const F>, bool);              \
  template void rope<F>(Workers &, const F *, F *, std::span<const int32_t>, size_t, size_t, std::span<const double>,  \
                        bool, double);
SPRIG_INSTANTIATE(float)
SPRIG_INSTANTIATE(double)

} // namespace mlir::llm::reference
