#include "LinearProblem.h"
#include "codegen/Kernels/BlockCodec.h"

#include <map>

namespace mlir::llm::test {
namespace {

void check(const LinearSpec &spec, const TargetProfile &profile, uint32_t width,
           uint64_t seed) {
  Problem problem(spec, width, seed);
  std::vector<float> y = problem.runOn(profile, spec, 0, width);
  std::vector<double> expected = problem.expected();
  ASSERT_EQ(y.size(), expected.size()) << describe(spec);
  double tolerance = problem.tolerance(), worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    double error = std::fabs(y[i] - expected[i]);
    if (!(error <= worst)) {
      worst = error;
      where = i;
    }
  }
  EXPECT_LE(worst, tolerance)
      << describe(spec) << " width " << width << " seed " << seed << " on "
      << profile.name << ": row " << where / size_t(spec.n) << " column "
      << where % size_t(spec.n) << " is " << y[where] << " instead of "
      << expected[where];
}

/// The target with short kernels, one row tile a lane: drivers take long over
/// wide tiles of the larger formats, and what a tile repeats needs no second
/// look.
const TargetProfile &narrow(StringRef base) {
  static std::map<std::string, TargetProfile> known;
  auto it = known.find(base.str());
  if (it == known.end()) {
    ScheduleValues choices = {{"rows", 1}};
    if (base == "lavapipe")
      choices = {{"rows", 1}, {"x", "shuffle"}, {"prescale", 1}, {"texels", 3}};
    it = known.emplace(base.str(), scheduled(base, choices)).first;
  }
  return it->second;
}

TEST(Linear, EveryFormatAgreesWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (Format format : BlockCodec::formats())
    for (const std::string &target :
         {deviceProfile().name, std::string("generic")}) {
      LinearSpec spec;
      spec.format = format;
      spec.k = std::max<int64_t>(blockOf(format), 32) * 2;
      spec.n = 11;
      spec.tokens = target == "generic" ? 1 : 2;
      check(spec, narrow(target), uint32_t(spec.tokens), random.bits());
    }
}

using Affine = quant::AffineFormat;

/// Every width, kind, type of scale, and groups with and without tails.
std::vector<Format> groupFormats() {
  std::vector<Format> list;
  for (uint32_t bits : {2u, 3u, 4u, 5u, 6u, 8u})
    for (Affine::Kind kind :
         {Affine::Kind::Symmetric, Affine::Kind::Zero, Affine::Kind::Minimum}) {
      const auto scale = Affine::Scale((bits + unsigned(kind)) % 3);
      const uint32_t group = std::array{32u, 64u, 128u, 0u}[list.size() % 4];
      list.push_back(*quant::formatOf({bits, kind, scale, group}));
    }
  for (uint32_t among : {4u, 8u})
    for (uint32_t bits : {4u, 8u})
      for (Affine::Kind kind : {Affine::Kind::Symmetric, Affine::Kind::Zero}) {
        const auto scale = list.size() % 3 ? Affine::Scale::F16 : Affine::Scale::F32;
        const uint32_t group = std::array{32u, 64u, 0u}[list.size() % 3];
        list.push_back(*quant::formatOf({bits, kind, scale, group, among}));
      }
  for (uint32_t bits : {2u, 3u, 4u})
    list.push_back(*quant::formatOf({bits, Affine::Kind::Book}));
  for (auto code : {Affine::Code::E4M3, Affine::Code::E5M2})
    for (uint32_t scale : {0u, 1u, 2u})
      list.push_back(*quant::formatOf({8, Affine::Kind::Symmetric, Affine::Scale(scale), std::array{128u, 0u, 32u}[scale], 0, code}));
  return list;
}

TEST(Linear, FormatsOfGroupsAgreeWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(3);
  for (Format format : groupFormats()) {
    SCOPED_TRACE(quant::info(format).name);
    LinearSpec spec;
    spec.format = format;
    spec.k = 288; // 4.5 groups of 64, 2.25 of 128
    spec.n = 19;
    spec.tokens = random.below(2) ? 1 : 4;
    check(spec, profile(deviceProfile().name), uint32_t(spec.tokens),
          random.bits());
    // Nine units: the last span ends with units that are not there.
    spec.tokens = random.below(2) ? 1 : 2;
    const TargetProfile spans = scheduled(
        "generic",
        {{"rows", 1}, {"split", random.below(2) ? 1 : 4}, {"spans", 1}});
    check(spec, spans, uint32_t(spec.tokens), random.bits());
  }
}

/// What reads a row's last block again, where a span ends behind it, does not
/// make an infinite result none.
TEST(Linear, SpansPastTheRowLeaveInfinityAlone) {
  SKIP_WITHOUT_DEVICE();
  LinearSpec spec;
  spec.format = Format::Q8_0;
  spec.k = 96, spec.n = 8;
  Problem problem(spec, 1, 7);
  std::vector<std::byte> ones(8 * 3 * 34);
  for (size_t block = 0; block < ones.size(); block += 34) {
    ones[block + 1] = std::byte(0x3c); // a scale of 1, and codes of 1
    std::fill(ones.begin() + int64_t(block) + 2,
              ones.begin() + int64_t(block) + 34, std::byte(1));
  }
  problem.hold(ones);
  problem.setInput(95, std::numeric_limits<float>::infinity());
  const TargetProfile spans = scheduled("generic", {{"rows", 1}, {"spans", 1}});
  for (float y : problem.runOn(spans, spec, 0, 1))
    EXPECT_EQ(y, std::numeric_limits<float>::infinity());
}

/// A lane fetches at least eight bytes of codes at a time, those of three and
/// five bits too, whose units have an odd number of words.
TEST(Linear, CodesOfGroupsAreLoadedEightBytesAtATime) {
  for (Format format : groupFormats())
    EXPECT_GE(planeElementBytes(quant::describe(format, 8, 128).planes[0]), 8u)
        << quant::info(format).name;
  const auto bytes = [](uint32_t unit, unsigned widest = 16, uint32_t run = 1) {
    quant::PlaneLayout plane{};
    plane.unitBytes = unit, plane.run = run;
    return planeElementBytes(plane, widest);
  };
  EXPECT_EQ(bytes(12), 8u);
  EXPECT_EQ(bytes(20, 8), 8u);
  EXPECT_EQ(bytes(12, 4), 4u);
  EXPECT_EQ(bytes(4), 4u);
  EXPECT_EQ(bytes(2), 4u);
  EXPECT_EQ(bytes(32), 16u);
  EXPECT_EQ(bytes(4, 16, 2), 8u);
  EXPECT_EQ(bytes(2, 16, 4), 8u);
  EXPECT_EQ(bytes(4, 16, 4), 16u);
  EXPECT_EQ(bytes(1, 16, 4), 4u);
}

/// And scales, of formats whose blocks are small: those of several units in one
/// load.
TEST(Linear, ScalesAreLoadedEightBytesAtATime) {
  for (Format format : {Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q5_1,
                        Format::Q8_0, Format::IQ4_NL, Format::NVFP4})
    for (const quant::PlaneLayout &plane :
         quant::describe(format, 8, 256).planes)
      EXPECT_GE(planeElementBytes(plane), 8u)
          << quant::info(format).name << " " << plane.name;
}

/// A weight alone is its own product with one: to the last bit what the
/// reference decodes.
TEST(Linear, FormatsOfGroupsDecodeToTheLastBit) {
  SKIP_WITHOUT_DEVICE();
  for (Format format : groupFormats()) {
    SCOPED_TRACE(quant::info(format).name);
    // A product with 24 bits of scale is rounded before a minimum is added.
    const Affine affine = *quant::affineOf(format);
    if (affine.kind == Affine::Kind::Minimum &&
        affine.scale == Affine::Scale::F32)
      continue;
    LinearSpec spec;
    spec.format = format;
    spec.k = 96;
    spec.n = 40;
    Problem problem(spec, 1, 7);
    for (int64_t k : {0, 13, 31, 32, 63, 95})
      problem.expectColumn(profile(deviceProfile().name), k);
  }
}

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

/// Every rule of every profile must be one that the family understands.
TEST(Linear, ProfilesHaveLegalSchedules) {
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  for (const std::string &name : listProfiles()) {
    const TargetProfile &target = profile(name);
    auto rules = target.schedules.find("linear");
    if (rules == target.schedules.end())
      continue;
    for (const ScheduleRule &rule : rules->second)
      ASSERT_TRUE(
          succeeded(LinearSchedule::from(rule.choices, target, emitError)))
          << takeDiagnostics();
    // A token's bits would depend on the width of the step if rules for other
    // token counts summed in another order.
    if (!target.bitEqualWidths)
      continue;
    std::vector<Format> formats = groupFormats();
    llvm::append_range(formats, BlockCodec::formats());
    for (Format format : formats)
      for (const char *gate : {"", "silu"})
        for (bool integers : {false, true}) {
          std::optional<ScheduleValues> contract;
          for (int64_t tokens : target.tokenTiles) {
            LinearSpec spec;
            spec.format = format, spec.n = 64, spec.k = 256;
            spec.gate = gate, spec.integers = integers, spec.tokens = tokens;
            ScheduleValues sums;
            for (const auto &[choice, value] :
                 spec.schedule(target, emitError)->values())
              if (LinearSchedule::changesBits(choice))
                sums[choice] = value;
            EXPECT_EQ(contract.value_or(sums), sums)
                << name << " " << quant::info(format).name << " " << gate
                << " tokens " << tokens;
            contract = sums;
          }
        }
  }
}

} // namespace
} // namespace mlir::llm::test
