#include "lib/Reference/Math/Gram.h"
#include "lib/Reference/Math/Workers.h"

#include <gtest/gtest.h>
#include <vector>

using namespace mlir::llm::reference;

// Small integers: sums are exact in any order.
TEST(Gram, AddsUpAcrossCalls) {
  Workers workers(2);
  for (size_t K : {1, 7, 128, 131, 300}) {
    std::vector<float> gram(K * K), expected(K * K);
    for (size_t T : {1, 5}) {
      std::vector<float> x(T * K);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(int(i * 7 % 11) - 5);
      addGram(workers, x.data(), T, K, gram.data());
      for (size_t t = 0; t < T; ++t)
        for (size_t i = 0; i < K; ++i)
          for (size_t j = 0; j < K; ++j)
            expected[i * K + j] += x[t * K + i] * x[t * K + j];
    }
    mirrorGram(K, gram.data());
    ASSERT_EQ(gram, expected) << "K = " << K;
  }
}
