#include "codegen/Kernels/Norm.h"
#include "StepState.h"
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/Hadamard.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

void checkNorm(const NormSpec &s, const TargetProfile &profile, uint32_t width,
               uint64_t seed) {
  const CompiledKernel *kernel = compile("norm", s.toAttr(context()), profile);
  ASSERT_TRUE(kernel);
  Random random(seed);
  std::vector<float> x = random.numbers(width * s.width),
                     gamma = random.numbers(s.width),
                     beta = random.numbers(s.width);
  std::vector<Bytes> buffers = {toBytes(x)};
  if (s.scale)
    buffers.push_back(toBytes(gamma));
  if (s.shift)
    buffers.push_back(toBytes(beta));
  if (s.last)
    buffers.push_back(toBytes(control(5, width, 100)));
  buffers.push_back(Bytes((s.last ? 1 : width) * s.width * 4));
  run(*kernel, buffers, width);
  std::vector<float> y = fromBytes<float>(buffers.back());
  for (uint32_t t = 0; t < (s.last ? 1 : width); ++t) {
    const float *row = &x[(s.last ? width - 1 : t) * s.width];
    double mean = 0, squares = 0;
    if (s.kind == "layer")
      for (int64_t i = 0; i < s.width; ++i)
        mean += row[i] / double(s.count);
    for (int64_t i = 0; i < s.width; ++i)
      squares += (row[i] - mean) * (row[i] - mean);
    if (s.kind == "layer") // channels that are gone count as zeros
      squares += double(s.count - s.width) * mean * mean;
    double factor = 1 / std::sqrt(squares / double(s.count) + s.eps);
    for (int64_t i = 0; i < s.width; ++i) {
      double right = (row[i] - mean) * factor;
      if (s.scale)
        right *= gamma[i];
      if (s.shift)
        right += beta[i];
      ASSERT_NEAR(y[t * s.width + i], right, 5e-6)
          << kernel->interface.key << " token " << t;
    }
  }
}

TEST(Norm, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(13);
  for (int i = 0; i < 20; ++i) {
    NormSpec spec;
    spec.width = spec.count =
        random.among<int64_t>({1, 7, 8, 9, 64, 65, 576, 577});
    if (random.below(4) == 0)
      spec.count = 1 + spec.width / 2;
    spec.kind = random.among<std::string>({"rms", "layer"});
    if (spec.kind == "layer")
      spec.count = spec.width + random.among<int64_t>({0, 9});
    spec.eps = random.among<double>({1e-6, 1e-5});
    spec.scale = random.below(2);
    spec.shift = random.below(2);
    spec.last = random.below(3) == 0;
    for (uint32_t width : {1, 7, 64})
      checkNorm(spec, i % 4 == 3 ? profile("generic") : deviceProfile(), width,
                i);
  }
}

double right(const ElementwiseSpec &s, double a, double b) {
  auto activation = [&](double x) -> double {
    if (s.kind == "silu")
      return x / (1 + std::exp(-x));
    if (s.kind == "gelu")
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    if (s.kind == "gelu_tanh")
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return std::max(x, 0.0);
  };
  if (s.op == "add")
    return a + b;
  if (s.op == "scale")
    return a * s.number;
  if (s.op == "softcap")
    return s.number * std::tanh(a / s.number);
  if (s.op == "activation")
    return activation(a);
  if (s.op == "gated")
    return activation(a) * b;
  return a;
}

TEST(Elementwise, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(17);
  for (int i = 0; i < 60; ++i) {
    ElementwiseSpec s;
    s.op = random.among<std::string>(
        {"add", "scale", "softcap", "activation", "gated", "last"});
    s.width = random.among<int64_t>({1, 63, 64, 65, 576});
    if (s.op == "activation" || s.op == "gated")
      s.kind = random.among<std::string>({"silu", "gelu", "gelu_tanh", "relu"});
    if (s.op == "scale" || s.op == "softcap")
      s.number = 3.5;
    uint32_t width = random.among<uint32_t>({1, 7, 64});
    const CompiledKernel *kernel =
        compile("elementwise", s.toAttr(context()),
                i % 4 == 3 ? profile("generic") : deviceProfile());
    ASSERT_TRUE(kernel);
    std::vector<float> a = random.numbers(width * s.width),
                       b = random.numbers(width * s.width);
    // Large arguments overflow a careless exponential.
    for (float &x : a)
      x *= random.below(10) == 0 ? 200.0f : 4.0f;
    std::vector<Bytes> buffers = {toBytes(a)};
    if (s.op == "last")
      buffers.push_back(toBytes(control(2, width, 100)));
    else if (s.op == "add" || s.op == "gated")
      buffers.push_back(toBytes(b));
    uint32_t rows = s.op == "last" ? 1 : width;
    buffers.push_back(Bytes(rows * s.width * 4));
    run(*kernel, buffers, width);
    std::vector<float> y = fromBytes<float>(buffers.back());
    size_t offset = s.op == "last" ? (width - 1) * s.width : 0;
    for (size_t n = 0; n < y.size(); ++n) {
      double expected = right(s, a[offset + n], b[n]);
      ASSERT_NEAR(y[n], expected, 3e-6 * (1 + std::abs(expected)))
          << kernel->interface.key << " of " << a[offset + n];
    }
  }
}

TEST(Elementwise, ColumnsByAVector) {
  SKIP_WITHOUT_DEVICE();
  Random random(19);
  for (bool gather : {false, true})
    for (uint32_t width : {1u, 7u}) {
      ElementwiseSpec s;
      s.op = gather ? "gather" : "scale_columns";
      s.width = gather ? 5 : 192, s.from = gather ? 100 : 64;
      const CompiledKernel *kernel =
          compile("elementwise", s.toAttr(context()), deviceProfile());
      ASSERT_TRUE(kernel);
      const int64_t columns = gather ? s.from : s.width;
      std::vector<float> x = random.numbers(size_t(width * columns));
      std::vector<float> b =
          gather ? std::vector<float>{99, 0, 7, 63, 64} : random.numbers(64);
      std::vector<Bytes> buffers = {toBytes(x), toBytes(b),
                                    Bytes(width * size_t(s.width) * 4)};
      run(*kernel, buffers, width);
      std::vector<float> y = fromBytes<float>(buffers.back());
      for (size_t t = 0; t < width; ++t)
        for (size_t i = 0; i < size_t(s.width); ++i) {
          const float *row = &x[t * size_t(columns)];
          ASSERT_EQ(y[t * size_t(s.width) + i],
                    gather ? row[size_t(b[i])] : row[i] * b[i % 64]);
        }
    }
}

/// By the definition: H[i][j] is -1 to the number of bits that i and j share.
TEST(Hadamard, AgreesWithTheMatrix) {
  SKIP_WITHOUT_DEVICE();
  Random random(23);
  for (int64_t block : {2, 16, 64, 256, 1024})
    for (bool inverse : {false, true}) {
      HadamardSpec s;
      s.block = block, s.width = block * (1 + random.below(3));
      s.inverse = inverse, s.signs = inverse || block == 64;
      const uint32_t width = 3;
      const CompiledKernel *kernel =
          compile("hadamard", s.toAttr(context()),
                  inverse ? profile("generic") : deviceProfile());
      ASSERT_TRUE(kernel);
      const size_t W = size_t(s.width);
      std::vector<float> x = random.numbers(width * W), signs(W, 1.0f);
      std::vector<Bytes> buffers = {toBytes(x)};
      if (s.signs) {
        for (float &sign : signs)
          sign = random.below(2) ? 1.0f : -1.0f;
        buffers.push_back(toBytes(signs));
      }
      buffers.push_back(Bytes(width * W * 4));
      run(*kernel, buffers, width);
      std::vector<float> y = fromBytes<float>(buffers.back());
      for (size_t t = 0; t < width; ++t)
        for (size_t i = 0; i < W; ++i) {
          double right = 0;
          const size_t first = i / size_t(block) * size_t(block);
          for (size_t j = 0; j < size_t(block); ++j) {
            double sign = llvm::popcount((i - first) & j) % 2 ? -1 : 1;
            sign *= inverse ? 1 : signs[first + j];
            right += sign * x[t * W + first + j];
          }
          right *= (inverse ? signs[i] : 1) / std::sqrt(double(block));
          ASSERT_NEAR(y[t * W + i], right, 1e-5)
              << kernel->interface.key << " token " << t << " number " << i;
        }
    }
}

TEST(Elementwise, RefusesUnknownNames) {
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  ElementwiseSpec s;
  s.op = "divide", s.width = 4;
  EXPECT_TRUE(
      failed(ElementwiseSpec::fromAttr(s.toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("but got 'divide'"), std::string::npos);
  s.op = "gated", s.kind = "swoosh";
  EXPECT_TRUE(
      failed(ElementwiseSpec::fromAttr(s.toAttr(context()), emitError)));
  EXPECT_NE(takeDiagnostics().find("but got 'swoosh'"), std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
