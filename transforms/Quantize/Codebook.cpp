#include "transforms/Quantize/Codebook.h"

#include "lib/Quant/Half.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

/// Rounds of k-means; most rows stand still after a dozen.
static constexpr int kRounds = 40;

namespace {

/// One row: its numbers in order, and sums of weights and of weighted numbers up to each of them, so that a cluster,
/// which is a run of neighbours, costs two subtractions.
class Row {
public:
  Row(ArrayRef<float> row, ArrayRef<double> importance) {
    std::vector<int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return row[size_t(a)] != row[size_t(b)] ? row[size_t(a)] < row[size_t(b)] : a < b;
    });
    weights.push_back(0), sums.push_back(0);
    for (int64_t k : order) {
      // A column that nothing met still has a number, which decides where no other does.
      const double counts = importance.empty() ? 1 : std::max(importance[size_t(k)], 1e-12);
      numbers.push_back(row[size_t(k)]);
      weights.push_back(weights.back() + counts);
      sums.push_back(sums.back() + counts * row[size_t(k)]);
    }
  }

  /// `count` means, ascending.
  std::vector<double> cluster(size_t count) const {
    std::vector<double> means = first(count);
    for (int round = 0; round < kRounds; ++round) {
      bool moved = false;
      size_t begin = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t end = i + 1 == count ? numbers.size() : behind((means[i] + means[i + 1]) / 2);
        if (end > begin) {
          const double mean = (sums[end] - sums[begin]) / (weights[end] - weights[begin]);
          moved |= mean != means[i];
          means[i] = mean;
        }
        begin = std::max(begin, end);
      }
      if (!moved)
        break;
    }
    return means;
  }

private:
  /// Places by the cube root of how densely numbers lie, as the best codebook of many entries has them: halfway between
  /// an even grid and equal shares of the weight.
  std::vector<double> first(size_t count) const {
    std::vector<double> means;
    const double low = numbers.front(), high = numbers.back();
    for (size_t i = 0; i < count; ++i) {
      const double share = (double(i) + 0.5) / double(count);
      const auto at = std::upper_bound(weights.begin(), weights.end(), share * weights.back());
      const auto index = std::clamp<ptrdiff_t>(at - weights.begin() - 1, 0, ptrdiff_t(numbers.size()) - 1);
      means.push_back((low + share * (high - low) + numbers[size_t(index)]) / 2);
    }
    return means;
  }

  /// The first number above a border.
  size_t behind(double border) const {
    return size_t(std::upper_bound(numbers.begin(), numbers.end(), border) - numbers.begin());
  }

  std::vector<double> numbers, weights, sums;
};

} // namespace

CodebookRows mlir::llm::learnCodebooks(MLIRContext *context, unsigned bits, const Matrix &weight,
                                       ArrayRef<double> importance) {
  namespace quant = sprig::quant;
  CodebookRows rows{weight.N, weight.K, bits, std::vector<int8_t>(weight.numbers.size()), {}};
  const size_t count = size_t(rows.entries());
  rows.books.resize(size_t(weight.N) * count);
  forRows(context, weight.N, 8, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float *book = rows.books.data() + size_t(n) * count;
      for (auto [i, mean] : llvm::enumerate(Row(weight.row(n), importance).cluster(count)))
        book[i] = quant::halfToFloat(quant::floatToHalf(float(mean)));
      std::sort(book, book + count);
      for (auto [k, w] : llvm::enumerate(weight.row(n))) {
        // The nearer of the two entries around it.
        const size_t above = size_t(std::lower_bound(book, book + count, w) - book);
        const bool lower = above == count || (above > 0 && w - book[above - 1] <= book[above] - w);
        rows.codes[size_t(n * weight.K) + k] = int8_t(lower ? above - 1 : above);
      }
    }
  });
  return rows;
}
