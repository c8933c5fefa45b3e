// The arithmetic of rounding weights, on random weights and inputs.
#include "transforms/Prune/SparseMasks.h"
#include "transforms/Quantize/KeptNumbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::llm;

namespace {

class RoundingTest : public ::testing::Test {
protected:
  Matrix randomMatrix(int64_t N, int64_t K, float heavy = 0) {
    std::normal_distribution<float> normal;
    Matrix matrix{N, K, std::vector<float>(size_t(N * K))};
    for (float &number : matrix.numbers)
      number = normal(random) * (random() % 50 ? 1 : 1 + heavy);
    return matrix;
  }

  /// Σ xxᵀ of inputs that lie near a few directions, as activations do.
  std::vector<float> correlatedMoments(int64_t K, int64_t rows) {
    const Matrix mix = randomMatrix(K, 8);
    std::normal_distribution<float> normal;
    std::vector<float> gram(size_t(K * K), 0), x(static_cast<size_t>(K), 0.0f);
    for (int64_t t = 0; t < rows; ++t) {
      float hidden[8];
      for (float &value : hidden)
        value = normal(random);
      for (int64_t k = 0; k < K; ++k) {
        x[size_t(k)] = 0.3f * normal(random);
        for (int64_t i = 0; i < 8; ++i)
          x[size_t(k)] += mix.row(k)[size_t(i)] * hidden[i];
      }
      for (int64_t i = 0; i < K; ++i)
        for (int64_t j = 0; j < K; ++j)
          gram[size_t(i * K + j)] += x[size_t(i)] * x[size_t(j)];
    }
    return gram;
  }

  QuantizedRows roundAll(const WeightScheme &scheme, const Matrix &weight, bool best) {
    QuantizedRows rows{weight.N, weight.K, std::vector<int8_t>(weight.numbers.size()),
                       std::vector<GroupGrid>(size_t(weight.N * scheme.groups(weight.K)))};
    for (int64_t n = 0; n < weight.N; ++n)
      roundRow(scheme, weight.row(n), best, rows, n);
    return rows;
  }

  double weightError(const WeightScheme &scheme, const Matrix &weight, const QuantizedRows &rows) {
    double sum = 0;
    for (int64_t n = 0; n < weight.N; ++n)
      for (int64_t k = 0; k < weight.K; ++k)
        sum += std::pow(weight.row(n)[size_t(k)] - rows.value(scheme, n, k), 2);
    return sum;
  }

  std::mt19937 random{7};
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

const WeightScheme kSchemes[] = {{4, 64, true}, {4, 64, false}, {3, 32, true},  {2, 32, false},
                                 {8, 0, true},  {5, 0, false},  {6, 128, true}, {3, 128, false}};

TEST_F(RoundingTest, CodesAreWithinReachAndNearest) {
  const Matrix weight = randomMatrix(8, 160);
  for (const WeightScheme &scheme : kSchemes) {
    SCOPED_TRACE(::testing::Message() << scheme.bits << " bits, group " << scheme.group);
    const QuantizedRows rows = roundAll(scheme, weight, false);
    for (int64_t n = 0; n < weight.N; ++n)
      for (int64_t k = 0; k < weight.K; ++k) {
        const int8_t stored = rows.codes[size_t(n * weight.K + k)];
        const float code = scheme.symmetric ? float(stored) : float(uint8_t(stored));
        ASSERT_GE(code, scheme.least());
        ASSERT_LE(code, scheme.most());
        const GroupGrid &grid = rows.grids[size_t(n * scheme.groups(weight.K) + k / scheme.groupOf(weight.K))];
        // Half a step, or a little more at the end of a range whose scale was rounded down to f16.
        ASSERT_LE(std::fabs(weight.row(n)[size_t(k)] - rows.value(scheme, n, k)), 0.52f * std::fabs(grid.scale) + 1e-6f);
      }
  }
}

TEST_F(RoundingTest, BestGridsAreNeverWorseThanRanges) {
  const Matrix weight = randomMatrix(16, 256, /*heavy=*/4);
  for (const WeightScheme &scheme : kSchemes) {
    SCOPED_TRACE(::testing::Message() << scheme.bits << " bits, group " << scheme.group);
    const double best = weightError(scheme, weight, roundAll(scheme, weight, true));
    const double plain = weightError(scheme, weight, roundAll(scheme, weight, false));
    EXPECT_LE(best, plain);
    if (scheme.bits <= 4)
      EXPECT_LT(best, 0.97 * plain);
  }
}

TEST_F(RoundingTest, ZeroAndConstantGroupsAreKept) {
  Matrix weight{2, 32, std::vector<float>(64, 0)};
  std::fill(weight.numbers.begin() + 32, weight.numbers.end(), 0.75f);
  for (const WeightScheme &scheme : kSchemes)
    for (bool best : {false, true}) {
      const QuantizedRows rows = roundAll(scheme, weight, best);
      for (int64_t k = 0; k < 32; ++k) {
        EXPECT_EQ(rows.value(scheme, 0, k), 0);
        EXPECT_NEAR(rows.value(scheme, 1, k), 0.75f, 1e-3);
      }
    }
}

/// UᵀU is the inverse of the damped moments, in the order of the columns.
TEST_F(RoundingTest, FactorsInvertTheMoments) {
  constexpr int64_t K = 24;
  const std::vector<float> gram = correlatedMoments(K, 40);
  double mean = 0;
  for (int64_t k = 0; k < K; ++k)
    mean += gram[size_t(k * K + k)] / K;
  for (bool byImportance : {false, true}) {
    auto factor = invertMoments(gram, K, 0.05, byImportance);
    ASSERT_TRUE(succeeded(factor));
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < K; ++j) {
        double sum = 0; // (H + λI) UᵀU
        for (int64_t k = 0; k < K; ++k) {
          double inverse = 0;
          for (int64_t m = 0; m <= std::min(k, j); ++m)
            inverse += double(factor->upper[size_t(m * K + k)]) * factor->upper[size_t(m * K + j)];
          const int64_t a = factor->order[size_t(i)], b = factor->order[size_t(k)];
          sum += (gram[size_t(a * K + b)] + (a == b ? 0.05 * mean : 0)) * inverse;
        }
        EXPECT_NEAR(sum, i == j, 1e-4);
      }
  }
  std::vector<float> bad(gram);
  bad[3] = NAN;
  bad[size_t(3 * K)] = NAN;
  EXPECT_TRUE(failed(invertMoments(bad, K, 0.05, false)));
}

/// Moments of one direction cannot be inverted as they are: no damping, then more and more, and an end to it.
TEST_F(RoundingTest, DampingOfNothingIsGivenUp) {
  constexpr int64_t K = 16;
  context.loadDialect<LLMDialect>();
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(&context)));
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  std::vector<float> gram(size_t(K * K), 1);
  EXPECT_TRUE(failed(invertMoments(gram, K, /*damping=*/0, false)));
  EXPECT_TRUE(succeeded(invertWithDamping(*module, gram, K, /*damping=*/0, false)));
  std::fill(gram.begin(), gram.end(), NAN);
  EXPECT_TRUE(failed(invertWithDamping(*module, gram, K, /*damping=*/0, false)));
  EXPECT_NE(message.find("damping of 1.0"), std::string::npos) << message;
}

/// Ranges are clipped where the outputs lose least by it, not the weight.
TEST_F(RoundingTest, GridsForInputsLoseLessOfTheOutput) {
  constexpr int64_t K = 160;
  const Matrix weight = randomMatrix(40, K, /*heavy=*/2);
  const std::vector<float> gram = correlatedMoments(K, 400);
  for (const WeightScheme &scheme : kSchemes) {
    SCOPED_TRACE(::testing::Message() << scheme.bits << " bits, group " << scheme.group);
    const QuantizedRows best = roundAll(scheme, weight, true);
    QuantizedRows rows = best;
    for (int64_t n = 0; n < weight.N; ++n)
      roundRowFor(scheme, weight.row(n), gram, rows, n);
    EXPECT_LT(outputError(&context, scheme, weight, rows, gram), outputError(&context, scheme, weight, best, gram));
    EXPECT_GE(weightError(scheme, weight, rows), weightError(scheme, weight, best));
  }
}

/// What GPTQ is for: less error behind the product, though more in the weight.
TEST_F(RoundingTest, GptqLosesLessOfTheOutput) {
  constexpr int64_t K = 160;
  const Matrix weight = randomMatrix(40, K);
  std::vector<float> gram = correlatedMoments(K, 400);
  for (const WeightScheme &scheme : kSchemes)
    for (bool byImportance : {false, true}) {
      SCOPED_TRACE(::testing::Message() << scheme.bits << " bits, group " << scheme.group << " order " << byImportance);
      auto factor = invertMoments(gram, K, 0.01, byImportance);
      ASSERT_TRUE(succeeded(factor));
      const double plain = outputError(&context, scheme, weight, roundAll(scheme, weight, true), gram);
      const double compensated = outputError(&context, scheme, weight, gptq(&context, scheme, weight, *factor), gram);
      EXPECT_LT(compensated, 0.7 * plain);
    }
}

/// Columns that never meet anything are rounded like any other, and disturb none.
TEST_F(RoundingTest, DeadColumnsAreHarmless) {
  constexpr int64_t K = 64;
  const Matrix weight = randomMatrix(8, K);
  std::vector<float> gram = correlatedMoments(K, 100);
  for (int64_t k = 0; k < K; ++k)
    gram[size_t(5 * K + k)] = gram[size_t(k * K + 5)] = 0;
  auto factor = invertMoments(gram, K, 0.01, true);
  ASSERT_TRUE(succeeded(factor));
  const WeightScheme scheme{4, 32, true};
  const QuantizedRows rows = gptq(&context, scheme, weight, *factor);
  for (int64_t n = 0; n < weight.N; ++n)
    EXPECT_NEAR(rows.value(scheme, n, 5), weight.row(n)[5], 0.6);
}

/// Without correlations there is nothing to make up with: GPTQ is rounding.
TEST_F(RoundingTest, GptqOfWhiteInputsIsRounding) {
  constexpr int64_t K = 64;
  const Matrix weight = randomMatrix(4, K);
  std::vector<float> gram(size_t(K * K), 0);
  for (int64_t k = 0; k < K; ++k)
    gram[size_t(k * K + k)] = 3;
  auto factor = invertMoments(gram, K, 0.01, false);
  ASSERT_TRUE(succeeded(factor));
  const WeightScheme scheme{4, 32, false};
  EXPECT_EQ(gptq(&context, scheme, weight, *factor).codes, roundAll(scheme, weight, true).codes);
}

/// Of each piece exactly as many stay as are allowed, whatever the method; what makes up for the rest loses least.
TEST_F(RoundingTest, SparsityByCurvatureLosesLeast) {
  const int64_t K = 160;
  const Matrix weight = randomMatrix(40, K);
  const std::vector<float> gram = correlatedMoments(K, 400);
  const auto inverse = invertMoments(gram, K, 0.01, /*byImportance=*/false);
  ASSERT_TRUE(succeeded(inverse));
  std::vector<float> norms;
  for (int64_t k = 0; k < K; ++k)
    norms.push_back(std::sqrt(gram[size_t(k * K + k)]));
  for (const SparseRule &rule : {SparseRule{{2, 4}, 0}, SparseRule{{4, 8}, 0}, SparseRule{{}, 0.5}}) {
    const WeightScheme scheme{8, 32, true, rule.pattern};
    const auto rounded = [&](const KeptNumbers &kept) {
      QuantizedRows rows{weight.N, K, std::vector<int8_t>(weight.numbers.size()),
                         std::vector<GroupGrid>(size_t(weight.N * scheme.groups(K))), kept};
      for (int64_t n = 0; n < weight.N; ++n)
        roundRow(scheme, weight.row(n), /*best=*/true, rows, n);
      return rows;
    };
    const QuantizedRows magnitude = rounded(keepLargest(&context, rule, weight, {})),
                        wanda = rounded(keepLargest(&context, rule, weight, norms));
    QuantizedRows joint{weight.N, K, std::vector<int8_t>(weight.numbers.size()),
                        std::vector<GroupGrid>(size_t(weight.N * scheme.groups(K)))};
    Matrix same = weight, floats = weight;
    sparseGpt(&context, rule, same, *inverse, scheme, &joint);
    sparseGpt(&context, rule, floats, *inverse, scheme, nullptr);
    EXPECT_EQ(same.numbers, weight.numbers);
    const auto error = [&](const QuantizedRows &rows) { return outputError(&context, scheme, weight, rows, gram); };
    EXPECT_LT(error(joint), error(wanda));
    EXPECT_LT(error(wanda), error(magnitude));
    for (const KeptNumbers &kept : {magnitude.kept, wanda.kept, joint.kept}) {
      ASSERT_EQ(kept.size(), weight.numbers.size());
      const size_t piece = rule.pattern.of ? rule.pattern.of : kept.size();
      for (size_t begin = 0; begin < kept.size(); begin += piece)
        EXPECT_EQ(std::count(kept.begin() + ptrdiff_t(begin), kept.begin() + ptrdiff_t(begin + piece), 1),
                  ptrdiff_t(piece / 2));
    }
    // What is zero is found again, and a later rounding leaves it so.
    if (!rule.pattern.of)
      continue;
    EXPECT_EQ(sparsityOf(floats), rule.pattern);
    const KeptNumbers kept = keptNumbers(floats, rule.pattern);
    const QuantizedRows later = gptq(&context, scheme, floats, *inverse, kept);
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(kept[i] || (floats.numbers[i] == 0 && later.value(scheme, int64_t(i) / K, int64_t(i) % K) == 0));
    EXPECT_LT(error(later), error(wanda));
  }
  EXPECT_EQ(sparsityOf(weight), Sparsity());
}

} // namespace
