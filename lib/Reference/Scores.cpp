#include "lib/Reference/Scores.h"

#include "lib/Reference/Math/Products.h"

#include <algorithm>
#include <cmath>

using namespace mlir::llm;
using namespace mlir::llm::reference;

/// Calls `use(row, numbers)` for all rows, in parallel, with the numbers in their own type.
template <typename Use> static void forRows(Workers &workers, const Tensor &logits, Use use) {
  const size_t V = size_t(logits.width());
  workers.run(size_t(logits.rows()), [&](size_t row) {
    if (logits.is<double>())
      use(row, std::span<const double>(logits.as<double>().data() + row * V, V));
    else
      use(row, std::span<const float>(logits.as<float>().data() + row * V, V));
  });
}

namespace {
/// Exponentials of a row less its largest number, by the vector unit of the processor: they are most of the work.
template <typename F> struct Exponentials {
  explicit Exponentials(std::span<const F> row)
      : top(*std::max_element(row.begin(), row.end())), numbers(row.begin(), row.end()) {
    productKernels<F>().exponentials(numbers.data(), ptrdiff_t(numbers.size()), top);
    for (F number : numbers)
      sum += double(number);
  }
  double logSum() const { return double(top) + std::log(sum); }
  F top;
  std::vector<F> numbers;
  double sum = 0;
};
} // namespace

std::vector<double> reference::negativeLogLikelihoods(Workers &workers, const Tensor &logits,
                                                      llvm::ArrayRef<int32_t> targets) {
  std::vector<double> result(size_t(logits.rows()));
  forRows(workers, logits, [&](size_t row, auto numbers) {
    result[row] = Exponentials(numbers).logSum() - double(numbers[size_t(targets[row])]);
  });
  return result;
}

/// Σ p (ln p − ln q) = Σ p (x − y) − ln Σ exp x + ln Σ exp y of logits x and y.
template <typename P, typename Q> static double divergence(std::span<const P> x, std::span<const Q> y) {
  const Exponentials weights(x);
  double between = 0;
  for (size_t i = 0; i < x.size(); ++i)
    between += double(weights.numbers[i]) * (double(x[i]) - double(y[i]));
  return between / weights.sum - weights.logSum() + Exponentials(y).logSum();
}

std::vector<double> reference::divergences(Workers &workers, const Tensor &reference, const Tensor &other) {
  std::vector<double> result(size_t(reference.rows()));
  const size_t V = size_t(reference.width());
  forRows(workers, reference, [&](size_t row, auto p) {
    if (other.is<double>())
      result[row] = divergence(p, std::span<const double>(other.as<double>().data() + row * V, V));
    else
      result[row] = divergence(p, std::span<const float>(other.as<float>().data() + row * V, V));
  });
  return result;
}

std::vector<int32_t> reference::argmaxima(const Tensor &logits) {
  std::vector<int32_t> result(size_t(logits.rows()));
  Workers alone(1);
  forRows(alone, logits, [&](size_t row, auto numbers) {
    result[row] = int32_t(std::max_element(numbers.begin(), numbers.end()) - numbers.begin());
  });
  return result;
}
