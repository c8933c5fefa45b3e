// Products by cooperative matrices. No device of these tests has any, so the
// kernels run with the matrix operations replaced by loops; everything around
// them is as it will be.
#include "EmulatedMatrix.h"
#include "LinearProblem.h"

namespace mlir::llm::test {
namespace {

TargetProfile withMatrices(int64_t rows, int64_t waves) {
  TargetProfile made = profile("lavapipe");
  for (Feature feature :
       {Feature::CooperativeMatrix, Feature::VulkanMemoryModel})
    made.features |= 1u << unsigned(feature);
  made.bitEqualWidths = false;
  made.schedules["linear"] = {{{},
                               {{"matrix", int64_t(1)},
                                {"x", std::string("direct")},
                                {"rows", rows},
                                {"waves", waves}}}};
  return made;
}

std::optional<CompiledKernel> emulated(const LinearSpec &spec,
                                       const TargetProfile &profile) {
  Location loc = UnknownLoc::get(context());
  auto interface =
      describeKernel("linear", spec.toAttr(context()), profile, loc);
  auto module = buildKernel("linear", spec.toAttr(context()), profile, loc);
  if (failed(interface) || failed(module)) {
    ADD_FAILURE() << takeDiagnostics();
    return std::nullopt;
  }
  emulateMatrices(**module, interface->invocations(), profile.subgroupSize);
  FailureOr<CompiledKernel> kernel =
      lowerKernel(**module, *interface, profile, loc);
  if (failed(kernel)) {
    ADD_FAILURE() << takeDiagnostics();
    return std::nullopt;
  }
  return *kernel;
}

void check(const LinearSpec &spec, int64_t rows, int64_t waves) {
  TargetProfile profile = withMatrices(rows, waves);
  auto width = uint32_t(spec.tokens) + 5; // two tiles, the second with padding
  Problem problem(spec, width, 1);
  auto kernel = emulated(spec, profile);
  std::vector<float> y =
      problem.runKernel(kernel ? &*kernel : nullptr, spec, 0, width);
  std::vector<double> expected = problem.expected();
  ASSERT_EQ(y.size(), expected.size()) << describe(spec);
  double apart = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    apart += (y[i] - expected[i]) * (y[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  // Weights and x were rounded to 11 bits.
  EXPECT_LT(std::sqrt(apart / size), 1e-3) << describe(spec);
}

LinearSpec specOf(Format format, int64_t n, int64_t k) {
  LinearSpec spec;
  spec.format = format;
  spec.n = n;
  spec.k = k;
  spec.tokens = 16;
  return spec;
}

TEST(Matrix, AgreesWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  if (!device()->lavapipe())
    GTEST_SKIP() << "the kernels are made for subgroups of lavapipe's size";
  // One, and small: drivers take long over such kernels where matrices are loops.
  LinearSpec fused = specOf(Format::Q4_0, 27, 64); // rows past the end
  fused.norm = fused.residual = fused.bias = true;
  fused.eps = 1e-5;
  check(fused, 2, 2);
}

TEST(Matrix, IsRefusedWhereBitsAreAPromise) {
  LinearSpec spec = specOf(Format::Q4_1, 64, 64);
  auto refusal = [&](const TargetProfile &profile) {
    Location loc = UnknownLoc::get(context());
    EXPECT_TRUE(failed(
        describeKernel("linear", spec.toAttr(context()), profile, loc)));
    return takeDiagnostics();
  };
  TargetProfile promises = withMatrices(2, 1);
  promises.bitEqualWidths = true;
  EXPECT_NE(refusal(promises).find(
                "expects a profile without bit_equal_widths for matrix"),
            std::string::npos);
  TargetProfile lacks = withMatrices(2, 1);
  lacks.features &= ~(1u << unsigned(Feature::CooperativeMatrix));
  EXPECT_NE(refusal(lacks).find("expects the feature cooperative_matrix"),
            std::string::npos);
  EXPECT_NE(refusal(withMatrices(1, 1)).find("an even number of row tiles"),
            std::string::npos);
  spec.tokens = 8;
  EXPECT_NE(refusal(withMatrices(2, 1)).find("tokens of a multiple of 16"),
            std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
