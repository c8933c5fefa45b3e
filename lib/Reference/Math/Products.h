// Matrix products by Eigen, compiled for several x86-64 levels and chosen at
// run time, so that a build made on one machine runs on another. All matrices
// are row major; `ld` is the distance of two rows in elements.
#ifndef SPRIG_LIB_REFERENCE_MATH_PRODUCTS_H
#define SPRIG_LIB_REFERENCE_MATH_PRODUCTS_H

#include <cstddef>
#include <vector>

namespace mlir::llm::reference {

class Workers;

/// The inner loops for one instruction set, single-threaded.
template <typename F> struct ProductKernels {
  const char *name;
  /// y[M, N] = x[M, K] * w[N, K]ᵀ
  void (*timesTransposed)(const F *x, ptrdiff_t ldx, const F *w, ptrdiff_t ldw, F *y, ptrdiff_t ldy, ptrdiff_t M,
                          ptrdiff_t N, ptrdiff_t K);
  /// y[M, N] = x[M, K] * v[K, N]
  void (*times)(const F *x, ptrdiff_t ldx, const F *v, ptrdiff_t ldv, F *y, ptrdiff_t ldy, ptrdiff_t M, ptrdiff_t N,
                ptrdiff_t K);
  /// x[i] = exp(x[i] - shift); returns the sum.
  F (*exponentials)(F *x, ptrdiff_t n, F shift);
};

/// The sets that this processor runs, the best last.
template <typename F> std::vector<const ProductKernels<F> *> supportedKernels();

/// The best of them.
template <typename F> const ProductKernels<F> &productKernels();

/// y[T, N] = x[T, K] * w[N, K]ᵀ on all workers.
template <typename F> void linear(Workers &workers, const F *x, const F *w, F *y, size_t T, size_t N, size_t K);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_PRODUCTS_H
