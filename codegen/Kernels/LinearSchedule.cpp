#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/Linear.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr std::pair<llvm::StringLiteral, LinearSchedule::X> kWays[] = {
    {"broadcast", LinearSchedule::X::Broadcast},
    {"direct", LinearSchedule::X::Direct},
    {"shuffle", LinearSchedule::X::Shuffle}};

} // namespace

FailureOr<LinearSchedule> LinearSchedule::from(const ScheduleValues &choices,
                                               const TargetProfile &profile,
                                               EmitError emitError) {
  LinearSchedule schedule;
  auto refuse = [&](const Twine &message) -> FailureOr<LinearSchedule> {
    return emitError() << "schedule of linear on target '" << profile.name
                       << "' " << message.str();
  };
  struct Number {
    llvm::StringLiteral name;
    int64_t *into;
    SmallVector<int64_t> anyOf;
  } numbers[] = {{"rows", &schedule.rows, {1, 2, 3, 4, 6, 8, 12, 16}},
                 {"waves", &schedule.waves, {1, 2, 4, 8, 16, 32}},
                 {"split", &schedule.split, {1, 2, 4, 8, 16, 32}},
                 {"chains", &schedule.chains, {1, 2, 4}},
                 {"load", &schedule.load, {32, 64, 128}},
                 {"texels", &schedule.texels, {0, 1, 2, 3}},
                 {"matrix", &schedule.matrix, {0, 1}},
                 {"dots", &schedule.dots, {0, 1, 2}},
                 {"spans", &schedule.spans, {0, 1}},
                 {"prescale", &schedule.prescale, {0, 1}}};
  for (const auto &[name, value] : choices) {
    if (name == "x") {
      const auto *word = std::get_if<std::string>(&value);
      const auto *way = llvm::find_if(kWays, [&](const auto &known) {
        return word && known.first == *word;
      });
      if (way == std::end(kWays))
        return refuse("expects x to be broadcast, direct or shuffle");
      schedule.x = way->second;
      continue;
    }
    auto *known =
        llvm::find_if(numbers, [&, &key = name](const Number &number) {
          return number.name == key;
        });
    if (known == std::end(numbers))
      return refuse("has an unknown choice '" + name + "'");
    const auto *number = std::get_if<int64_t>(&value);
    if (!number || !llvm::is_contained(known->anyOf, *number)) {
      std::string list;
      for (int64_t allowed : known->anyOf)
        list += (list.empty() ? "" : ", ") + std::to_string(allowed);
      return refuse("expects " + name + " to be one of " + list);
    }
    *known->into = *number;
  }
  if (schedule.matrix) {
    for (Feature feature :
         {Feature::CooperativeMatrix, Feature::ShaderFloat16,
          Feature::VulkanMemoryModel, Feature::SubgroupShuffle})
      if (!profile.has(feature))
        return refuse("expects the feature " + featureName(feature) +
                      " for matrix");
    if (profile.bitEqualWidths)
      return refuse("expects a profile without bit_equal_widths for matrix: "
                    "numbers would depend on how many tokens a step has");
    // A subgroup's rows make whole matrices of 16.
    int64_t sets = profile.subgroupSize / 8;
    if (schedule.x != X::Direct || schedule.split != 1 || sets == 0 ||
        schedule.waves % sets || sets * schedule.rows % 2)
      return refuse("expects x to be direct, split = 1, waves for whole "
                    "subgroups and an even number of row tiles in each for "
                    "matrix");
  }
  if (schedule.x != X::Direct) {
    if (!profile.canShuffle() || profile.subgroupSize < 8)
      return refuse("expects known subgroups of 8 or more that can shuffle for "
                    "x by broadcast or shuffle");
    if (schedule.x == X::Broadcast &&
        (schedule.split > 1 || profile.subgroupSize != 8))
      return refuse("expects subgroups of 8 and split = 1 for x by broadcast");
  }
  return schedule;
}

unsigned
LinearSchedule::elementBytes(const sprig::quant::PlaneLayout &plane) const {
  if (!texelWeights())
    return planeElementBytes(plane, unsigned(load / 8), spans);
  const unsigned bytes = plane.unitBytes * (spans ? plane.run : 1);
  // Of a texel that holds the runs of two rows, one is picked.
  return bytes % 16 == 0 || (spans && plane.run > 1 && bytes == 8) ? 16 : 4;
}

TexelFormat
LinearSchedule::texelOf(const sprig::quant::PlaneLayout &plane) const {
  if (!texelWeights())
    return TexelFormat::None;
  return elementBytes(plane) == 16 ? TexelFormat::Rgba32Uint
                                   : TexelFormat::R32Uint;
}

ScheduleValues LinearSchedule::values() const {
  StringRef way = llvm::find_if(kWays, [&](const auto &known) {
                    return known.second == x;
                  })->first;
  return {{"x", way.str()},   {"rows", rows},         {"waves", waves},
          {"split", split},   {"chains", chains},     {"load", load},
          {"texels", texels}, {"prescale", prescale}, {"matrix", matrix},
          {"dots", dots},     {"spans", spans}};
}

std::string LinearSchedule::key() const {
  StringRef way = llvm::find_if(kWays, [&](const auto &known) {
                    return known.second == x;
                  })->first;
  std::string text =
      llvm::formatv("x={0} rows={1} waves={2} split={3} chains={4} load={5} "
                    "texels={6} prescale={7}",
                    way, rows, waves, split, chains, load, texels, prescale);
  if (!spans)
    text += " spans=0";
  if (dots != 1)
    text += " dots=" + std::to_string(dots);
  return matrix ? text + " matrix" : text;
}

} // namespace mlir::llm
