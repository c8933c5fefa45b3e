#include "lib/Reference/Scores.h"

#include "lib/Reference/Math/Rows.h"

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

std::vector<double> reference::negativeLogLikelihoods(Workers &workers, const Tensor &logits,
                                                      llvm::ArrayRef<int32_t> targets) {
  std::vector<double> result(size_t(logits.rows()));
  forRows(workers, logits,
          [&](size_t row, auto numbers) { result[row] = logSumExp(numbers) - double(numbers[size_t(targets[row])]); });
  return result;
}

std::vector<double> reference::divergences(Workers &workers, const Tensor &reference, const Tensor &other) {
  std::vector<double> result(size_t(reference.rows()));
  const size_t V = size_t(reference.width());
  forRows(workers, reference, [&](size_t row, auto p) {
    auto against = [&](auto q) {
      const double normP = logSumExp(p), normQ = logSumExp(q);
      double sum = 0;
      for (size_t i = 0; i < V; ++i) {
        const double logP = double(p[i]) - normP;
        sum += std::exp(logP) * (logP - (double(q[i]) - normQ));
      }
      result[row] = sum;
    };
    if (other.is<double>())
      against(std::span<const double>(other.as<double>().data() + row * V, V));
    else
      against(std::span<const float>(other.as<float>().data() + row * V, V));
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
