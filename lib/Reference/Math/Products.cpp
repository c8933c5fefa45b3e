#include "lib/Reference/Math/Products.h"

#include "lib/Reference/Math/Workers.h"

#include <algorithm>

namespace mlir::llm::reference {

extern const ProductKernels<float> kProductsF32Baseline;
extern const ProductKernels<double> kProductsF64Baseline;
#ifdef SPRIG_X86_LEVELS
extern const ProductKernels<float> kProductsF32V3, kProductsF32V4;
extern const ProductKernels<double> kProductsF64V3, kProductsF64V4;
#endif

namespace {
/// x86-64 micro-architecture level that this processor supports, of those
/// compiled here: 1, 3 or 4.
int level() {
#ifdef SPRIG_X86_LEVELS
  static const int best = [] {
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? 4 : v3 ? 3 : 1;
  }();
  return best;
#else
  return 1;
#endif
}
} // namespace

template <> std::vector<const ProductKernels<float> *> supportedKernels<float>() {
  std::vector<const ProductKernels<float> *> sets = {&kProductsF32Baseline};
#ifdef SPRIG_X86_LEVELS
  if (level() >= 3)
    sets.push_back(&kProductsF32V3);
  if (level() >= 4)
    sets.push_back(&kProductsF32V4);
#endif
  return sets;
}

template <> std::vector<const ProductKernels<double> *> supportedKernels<double>() {
  std::vector<const ProductKernels<double> *> sets = {&kProductsF64Baseline};
#ifdef SPRIG_X86_LEVELS
  if (level() >= 3)
    sets.push_back(&kProductsF64V3);
  if (level() >= 4)
    sets.push_back(&kProductsF64V4);
#endif
  return sets;
}

template <typename F> const ProductKernels<F> &productKernels() {
  static const ProductKernels<F> &best = *supportedKernels<F>().back();
  return best;
}

template <typename F> void linear(Workers &workers, const F *x, const F *w, F *y, size_t T, size_t N, size_t K) {
  const ProductKernels<F> &kernels = productKernels<F>();
  // Blocks of some 768 rows keep the packed weights in the second-level cache
  // and give both threads work to share.
  const size_t share = (N + workers.size() - 1) / workers.size();
  const size_t block = std::max<size_t>(16, std::min<size_t>(768, (share + 15) / 16 * 16));
  const size_t blocks = (N + block - 1) / block;
  workers.run(blocks, [&](size_t i) {
    const size_t begin = i * block, rows = std::min(block, N - begin);
    kernels.timesTransposed(x, K, w + begin * K, K, y + begin, N, T, rows, K);
  });
}

template const ProductKernels<float> &productKernels<float>();
template const ProductKernels<double> &productKernels<double>();
template void linear<float>(Workers &, const float *, const float *, float *, size_t, size_t, size_t);
template void linear<double>(Workers &, const double *, const double *, double *, size_t, size_t, size_t);

} // namespace mlir::llm::reference
