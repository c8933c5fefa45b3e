// What the formats of weights make of a product: every format, those of groups,
// the loads that read them, and the rules of profiles for each.
#include "LinearProblem.h"
#include "codegen/Kernels/BlockCodec.h"

namespace mlir::llm::test {
namespace {

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
        const auto scale =
            list.size() % 3 ? Affine::Scale::F16 : Affine::Scale::F32;
        const uint32_t group = std::array{32u, 64u, 0u}[list.size() % 3];
        list.push_back(*quant::formatOf({bits, kind, scale, group, among}));
      }
  for (uint32_t bits : {2u, 3u, 4u})
    list.push_back(*quant::formatOf({bits, Affine::Kind::Book}));
  for (auto code : {Affine::Code::E4M3, Affine::Code::E5M2})
    for (uint32_t scale : {0u, 1u, 2u})
      list.push_back(
          *quant::formatOf({8, Affine::Kind::Symmetric, Affine::Scale(scale),
                            std::array{128u, 0u, 32u}[scale], 0, code}));
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
