// Numerics along rows: norms, softmax, nonlinearities, Hadamard transforms,
// rotary embeddings. Straightforward loops; sums and angles are taken in double
// whatever F is. `y` may be `x`.
#ifndef SPRIG_LIB_REFERENCE_MATH_ROWS_H
#define SPRIG_LIB_REFERENCE_MATH_ROWS_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace mlir::llm::reference {

class Workers;

/// 1 / sqrt(Σx² / count + eps) of one row; `count` is its length, or what that
/// was before pruning.
template <typename F> double rmsScale(std::span<const F> row, double eps, size_t count);

/// y = gamma · x · rmsScale(x) for each of T rows of D; `gamma` is empty or D
/// long.
template <typename F>
void rmsNorm(Workers &workers, const F *x, F *y, size_t T, size_t D, std::span<const F> gamma, double eps,
             size_t count);

/// y = gamma · (x − μ) / sqrt(σ² + eps) + beta, μ and σ² taken over `count`
/// numbers of which those past D are zero.
template <typename F>
void layerNorm(Workers &workers, const F *x, F *y, size_t T, size_t D, std::span<const F> gamma,
               std::span<const F> beta, double eps, size_t count);

/// Softmax of each of T rows of N.
template <typename F> void softmax(Workers &workers, const F *x, F *y, size_t T, size_t N);

/// ln Σ exp of one row, and the same minus a chosen element is its negative
/// log-likelihood.
template <typename F> double logSumExp(std::span<const F> row);

enum class Nonlinearity { Relu, Relu2, Silu, Gelu, GeluTanh, GeluQuick, Sigmoid, Tanh };

double nonlinearity(Nonlinearity kind, double x);
float nonlinearity(Nonlinearity kind, float x);

/// y = f(gate) · up over n numbers; with a null `up`, y = f(gate).
template <typename F> void activate(Workers &workers, Nonlinearity kind, const F *gate, const F *up, F *y, size_t n);

/// x → (x ∘ signs)·H / sqrt(block) in each block of a row; H is Sylvester's
/// Hadamard matrix, `block` a power of two that divides `width`, and `signs`
/// are empty or one a column. `inverse` undoes the whole: (x·H / sqrt(block)) ∘
/// signs.
template <typename F>
void hadamard(Workers &workers, const F *x, F *y, size_t rows, size_t width, size_t block, std::span<const F> signs,
              bool inverse = false);

/// Rotates the first 2P numbers of each head by position · frequency. Pairs are
/// (2i, 2i+1) when `interleaved`, else (i, i + P). Cosine and sine are
/// multiplied by `scale`.
template <typename F>
void rope(Workers &workers, const F *x, F *y, std::span<const int32_t> positions, size_t H, size_t E,
          std::span<const double> frequencies, bool interleaved, double scale);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_ROWS_H
