#include "LinearProblem.h"
#include "codegen/Kernels/BlockCodec.h"

namespace mlir::llm::test {
namespace {

LinearSpec randomSpec(Random &random) {
  LinearSpec spec;
  // Half of the cases are the formats of the default model and the plain ones.
  static const std::vector<Format> kCommon = {
      Format::Q4_1, Format::Q8_0, Format::Q4_0, Format::F32, Format::F16};
  auto every = BlockCodec::formats();
  spec.format = random.below(2) ? random.among(kCommon)
                                : every[random.below(uint32_t(every.size()))];
  int64_t block = blockOf(spec.format);
  spec.k = block == 1
               ? random.among<int64_t>({1, 3, 4, 31, 32, 33, 36, 64, 65, 100})
               : block * (1 + random.below(block >= 256 ? 2 : 4));
  spec.n = random.among<int64_t>({1, 7, 8, 9, 31, 32, 33, 40, 63, 65, 72});
  spec.tokens = random.among<int64_t>({1, 1, 2, 4, 8});
  if (block >= 256)
    spec.tokens = std::min<int64_t>(
        spec.tokens,
        2); // long kernels: compiling them would take most of the time
  switch (random.below(5)) {
  case 0:
    spec.gate = random.among<std::string>({"silu", "gelu", "gelu_tanh"});
    break;
  case 1:
    spec.outputs = {8, 8, 1 + int64_t(random.below(20))};
    spec.n = 16 + spec.outputs[2];
    break;
  case 2:
    spec.stride = spec.n + 5;
    break;
  default:
    break;
  }
  spec.norm = random.below(2);
  if (spec.norm && random.below(2)) {
    spec.eps = 1e-5;
    spec.count = random.below(2) ? 0 : spec.k / 2 + 1;
  }
  spec.bias = spec.gate.empty() && random.below(2);
  spec.residual = spec.outputs.empty() && random.below(2);
  if (!spec.outputs.empty())
    spec.bias = false;
  // The smallest targets have eight storage buffers.
  size_t planes =
      quant::info(spec.format).planes.size() * (spec.gate.empty() ? 1 : 2);
  if (planes + 2 + spec.norm * (2 - spec.ownFactor()) + spec.bias + spec.residual +
          spec.outputs.size() >
      8) {
    spec.norm = spec.bias = false;
    spec.eps = 0;
    spec.count = 0;
    if (planes > 5)
      spec.residual = false;
  }
  return spec;
}

TEST(Linear, RandomShapesAgreeWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    LinearSpec spec = randomSpec(random);
    bool other = i % 3 == 0;
    if (other) // its kernels are longer: drivers compile them for seconds
      spec.tokens = std::min<int64_t>(spec.tokens, 2);
    StringRef name = other ? "generic" : StringRef(deviceProfile().name);
    const TargetProfile &target =
        blockOf(spec.format) > 32 || other ? narrow(name) : profile(name);
    for (uint32_t width : {1u, 7u, 64u})
      check(spec, target, width, random.bits());
  }
}

/// Runs `width` tokens at once with tiles of `tokens`.
std::vector<float> runTiles(const LinearSpec &base,
                            const TargetProfile &profile, int64_t tokens,
                            uint32_t width) {
  LinearSpec spec = base;
  spec.tokens = tokens;
  return Problem(base, 16, 77).runOn(profile, spec, 0, width);
}

TEST(Linear, BitsDoNotDependOnTilesOrSchedules) {
  SKIP_WITHOUT_DEVICE();
  struct Contract {
    std::string target;
    std::vector<ScheduleValues> schedules;
  };
  std::vector<Contract> contracts = {
      {"generic",
       {{{"rows", 2}, {"split", 4}},
        {{"rows", 1}, {"split", 4}, {"load", 32}},
        {{"rows", 4}, {"split", 4}, {"waves", 2}}}}};
  if (deviceProfile().name == "lavapipe")
    contracts.push_back(
        {"lavapipe",
         {{{"x", "shuffle"}, {"rows", 4}},
          {{"x", "shuffle"}, {"rows", 2}, {"prescale", 1}, {"load", 64}},
          {{"x", "broadcast"}, {"rows", 1}, {"waves", 2}},
          {{"x", "direct"}, {"rows", 3}}}});
  for (auto [format, k] : {std::pair(Format::Q4_1, 96),
                           {Format::Q8_0, 64},
                           {Format::Q4_K, 256},
                           {Format::F16, 100}})
    for (const Contract &contract : contracts) {
      LinearSpec spec;
      spec.format = format;
      spec.k = k;
      spec.n = 40;
      spec.norm = true;
      spec.eps = 1e-5;
      std::vector<float> first;
      for (auto [i, choices] : llvm::enumerate(contract.schedules)) {
        TargetProfile target = scheduled(contract.target, choices);
        for (int64_t tokens : {1, 2, 3, 6, 8}) {
          // Compiling wide tiles takes drivers long: they are tried once.
          bool isLong = blockOf(format) >= 256 || contract.target == "generic";
          if ((i || format != Format::Q4_1 || isLong) && tokens != 1 &&
              tokens != (isLong ? 2 : 3))
            continue;
          std::vector<float> y = runTiles(spec, target, tokens, 16);
          if (first.empty())
            first = y;
          ASSERT_EQ(y.size(), first.size());
          EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * 4), 0)
              << describe(spec) << " tiles of " << tokens << " on "
              << contract.target << ", schedule " << i;
        }
        // One token alone.
        std::vector<float> alone = runTiles(spec, target, 1, 1);
        ASSERT_EQ(alone.size(), size_t(spec.n));
        EXPECT_EQ(std::memcmp(alone.data(), first.data(), alone.size() * 4), 0)
            << describe(spec);
      }
    }
}

TEST(Linear, GroupsPastTheLimitFoldIntoTheThirdDimension) {
  SKIP_WITHOUT_DEVICE();
  TargetProfile narrow = scheduled("generic", {{"rows", 1}});
  narrow.limits.groups = 3;
  LinearSpec spec;
  spec.format = Format::F32;
  spec.k = 8;
  spec.n = 8 * 7 + 3;
  auto interface = describeKernel("linear", spec.toAttr(context()), narrow,
                                  UnknownLoc::get(context()));
  ASSERT_TRUE(succeeded(interface));
  EXPECT_EQ(interface->groupsFor(1), (std::array<uint32_t, 3>{3, 1, 3}));
  check(spec, narrow, 2, 5);
}

TEST(Linear, SpecsCrossToAttributesAndBack) {
  Random random(3);
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  for (int i = 0; i < 50; ++i) {
    LinearSpec spec = randomSpec(random);
    FailureOr<LinearSpec> again =
        LinearSpec::fromAttr(spec.toAttr(context()), emitError);
    ASSERT_TRUE(succeeded(again)) << takeDiagnostics();
    EXPECT_EQ(describe(*again), describe(spec));
  }
}

std::string refusal(const LinearSpec &spec, const TargetProfile &target) {
  auto interface = describeKernel("linear", spec.toAttr(context()), target,
                                  UnknownLoc::get(context()));
  EXPECT_TRUE(failed(interface));
  return takeDiagnostics();
}

TEST(Linear, RefusesWhatItCannotDo) {
  const TargetProfile &generic = profile("generic");
  LinearSpec spec;
  spec.n = 8;
  spec.k = 33;
  spec.format = Format::Q4_1;
  EXPECT_EQ(refusal(spec, generic), "linear kernel expects k to be a multiple "
                                    "of the block of Q4_1, 32, but got 33");
  spec.k = 32;
  spec.gate = "sine";
  EXPECT_EQ(refusal(spec, generic),
            "linear kernel expects gate to be silu, gelu, gelu_tanh or relu, "
            "but got 'sine'");
  spec.gate = "";
  spec.format = Format::I32;
  EXPECT_EQ(
      refusal(spec, generic),
      "linear kernel expects a format that kernels can read, but got 'I32'");
  spec.format = Format::Q4_1;
  EXPECT_EQ(refusal(spec, scheduled("generic", {{"rows", 5}}))
                .find("schedule of linear on target"),
            0u);
  EXPECT_NE(refusal(spec, scheduled("generic", {{"x", "shuffle"}}))
                .find("expects known subgroups of 8 or more that can shuffle"),
            std::string::npos);
  spec.n = 300'000;
  spec.k = 1024;
  EXPECT_NE(
      refusal(spec, generic)
          .find(
              "expects at most 134217728 bytes in the binding of weight.codes"),
      std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
