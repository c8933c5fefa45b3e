#include "codegen/Kernels/RmsFactor.h"
#include "Harness.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

void check(const RmsFactorSpec &spec, const TargetProfile &profile,
           uint32_t width, uint64_t seed) {
  const CompiledKernel *kernel =
      compile("rms_factor", spec.toAttr(context()), profile);
  ASSERT_TRUE(kernel);
  std::vector<float> x = Random(seed).numbers(size_t(width) * spec.width);
  std::vector<Bytes> buffers = {toBytes(x), Bytes(width * 4)};
  run(*kernel, buffers, width);
  std::vector<float> y = fromBytes<float>(buffers[1]);
  for (uint32_t t = 0; t < width; ++t) {
    double sum = 0;
    for (int64_t k = 0; k < spec.width; ++k)
      sum += double(x[t * spec.width + k]) * x[t * spec.width + k];
    double expected = 1 / std::sqrt(sum / double(spec.count) + spec.eps);
    EXPECT_NEAR(y[t], expected, 2e-6 * expected)
        << kernel->interface.key << " token " << t;
  }
}

TEST(RmsFactor, AgreesWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (StringRef target : {deviceProfile().name, std::string("generic")})
    for (int64_t width : {1, 7, 8, 9, 63, 65, 576, 577, 1536})
      for (uint32_t tokens : {1u, 7u, 64u})
        check({width, width, 1e-5}, profile(target), tokens, random.bits());
  check({576, 500, 1e-6}, deviceProfile(), 3, 9);
}

TEST(RmsFactor, SpecsCrossToAttributesAndBack) {
  RmsFactorSpec spec{576, 500, 1e-6};
  DictionaryAttr attr = spec.toAttr(context());
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  FailureOr<RmsFactorSpec> again = RmsFactorSpec::fromAttr(attr, emitError);
  ASSERT_TRUE(succeeded(again));
  EXPECT_EQ(again->toAttr(context()), attr);
}

} // namespace
} // namespace mlir::llm::test
