#include "codegen/Target/TargetProfile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>

namespace mlir::llm {
namespace {

constexpr llvm::StringLiteral kFeatureNames[kFeatureCount] = {
    "shader_int8",         "shader_int16",
    "shader_int64",        "shader_float16",
    "storage_8bit",        "storage_16bit",
    "subgroup_basic",      "subgroup_vote",
    "subgroup_arithmetic", "subgroup_ballot",
    "subgroup_shuffle",    "integer_dot_product",
    "cooperative_matrix",  "subgroup_shuffle_relative",
    "subgroup_clustered",  "uniform_8bit",
    "uniform_16bit",       "shader_float64",
    "vulkan_memory_model"};

struct EmbeddedProfile {
  llvm::StringLiteral name, text;
};

constexpr EmbeddedProfile kEmbedded[] = {
#include "codegen/Target/Profiles.inc"
};

llvm::Error invalid(const TargetProfile &profile, const llvm::Twine &message) {
  return llvm::createStringError("target '" + profile.name + "' " + message);
}

} // namespace

llvm::StringRef featureName(Feature feature) {
  return kFeatureNames[unsigned(feature)];
}

std::optional<Feature> featureByName(llvm::StringRef name) {
  const auto *it = llvm::find(kFeatureNames, name);
  if (it == std::end(kFeatureNames))
    return std::nullopt;
  return Feature(it - std::begin(kFeatureNames));
}

bool ScheduleCondition::holds(const ScheduleValue &fact) const {
  if (!anyOf.empty())
    return llvm::is_contained(anyOf, fact);
  const int64_t *number = std::get_if<int64_t>(&fact);
  return number && (!min || *number >= *min) && (!max || *number <= *max);
}

bool TargetProfile::hasFault(llvm::StringRef fault) const {
  return llvm::any_of(
      faults, [&](const TargetFault &known) { return known.name == fault; });
}

const ScheduleValues *
TargetProfile::findSchedule(llvm::StringRef family,
                            const ScheduleValues &facts) const {
  auto rules = schedules.find(family);
  if (rules == schedules.end())
    return nullptr;
  for (const ScheduleRule &rule : rules->second) {
    bool applies = llvm::all_of(rule.when, [&](const auto &condition) {
      auto fact = facts.find(condition.first);
      return fact != facts.end() && condition.second.holds(fact->second);
    });
    if (applies)
      return &rule.choices;
  }
  return nullptr;
}

int64_t TargetProfile::tokenTile(int64_t tokens) const {
  constexpr int64_t kReading = 3; // tokens that a weight's reading weighs
  auto cost = [&](int64_t tile) {
    return (tokens + tile - 1) / tile * (kReading + tile);
  };
  return *llvm::min_element(tokenTiles, [&](int64_t a, int64_t b) {
    return cost(a) < cost(b);
  });
}

double TargetProfile::estimateSeconds(uint64_t bytes, uint64_t macs) const {
  double reading = double(bytes) / (rates.readGbPerSecond * 1e9);
  double computing = 2.0 * double(macs) / (rates.gflopPerSecond * 1e9);
  return std::max(reading, computing) + rates.dispatchMicroseconds * 1e-6;
}

llvm::Error validateProfile(const TargetProfile &profile) {
  const TargetLimits &limits = profile.limits;
  if (profile.vulkan < Version{1, 1})
    return invalid(profile, "expects Vulkan 1.1 or newer, but got " +
                                llvm::Twine(profile.vulkan.major) + "." +
                                llvm::Twine(profile.vulkan.minor));
  if (profile.spirv < Version{1, 3} || profile.spirv > Version{1, 6})
    return invalid(profile, "expects SPIR-V 1.3 to 1.6, but got " +
                                llvm::Twine(profile.spirv.major) + "." +
                                llvm::Twine(profile.spirv.minor));
  if (profile.subgroupSize > 128 ||
      (profile.subgroupSize && !llvm::isPowerOf2_32(profile.subgroupSize)))
    return invalid(profile, "expects a subgroup size of 0 (unknown) or a power "
                            "of two up to 128, but got " +
                                llvm::Twine(profile.subgroupSize));
  for (Feature feature :
       {Feature::SubgroupBasic, Feature::SubgroupVote,
        Feature::SubgroupArithmetic, Feature::SubgroupBallot,
        Feature::SubgroupShuffle, Feature::SubgroupShuffleRelative,
        Feature::SubgroupClustered})
    if (profile.subgroupSize == 0 && profile.has(feature))
      return invalid(profile, "expects no subgroup features while "
                              "subgroup_size is 0 (unknown), but got " +
                                  featureName(feature));

  // The least that Vulkan 1.1 guarantees; a smaller number is a slip of the
  // pen.
  struct Floor {
    llvm::StringRef name;
    uint64_t value, least;
  } floors[] = {{"workgroup_invocations", limits.workgroupInvocations, 128},
                {"workgroup_size x", limits.workgroupSize[0], 128},
                {"workgroup_size y", limits.workgroupSize[1], 128},
                {"workgroup_size z", limits.workgroupSize[2], 64},
                {"shared_bytes", limits.sharedBytes, 16384},
                // Less than is guaranteed cuts weights and caches into smaller
                // parts.
                {"storage_range", limits.storageRange, 1u << 16},
                {"uniform_range", limits.uniformRange, 16384},
                {"texel_elements", limits.texelElements, 65536},
                {"groups", limits.groups, 65535},
                {"push_constant_bytes", limits.pushConstantBytes, 128},
                {"storage_buffers", limits.storageBuffers, 4}};
  for (const Floor &floor : floors)
    if (floor.value < floor.least)
      return invalid(profile, "expects limits." + floor.name + " of at least " +
                                  llvm::Twine(floor.least) + ", but got " +
                                  llvm::Twine(floor.value));
  if (!llvm::isPowerOf2_32(limits.offsetAlignment) ||
      limits.offsetAlignment > 256)
    return invalid(profile, "expects limits.offset_alignment to be a power of "
                            "two up to 256, but got " +
                                llvm::Twine(limits.offsetAlignment));
  for (const auto &[key, list, most] :
       {std::tuple("token_tiles", &profile.tokenTiles, int64_t(64)),
        {"widths", &profile.widths, int64_t(4096)}})
    if (list->empty() || list->front() != 1 || list->back() > most ||
        llvm::adjacent_find(*list, std::greater_equal<int64_t>()) !=
            list->end())
      return invalid(profile, llvm::Twine("expects ") + key +
                                  " that rise from 1 to at most " +
                                  llvm::Twine(most));
  if (!(profile.rates.readGbPerSecond > 0 && profile.rates.gflopPerSecond > 0 &&
        profile.rates.dispatchMicroseconds >= 0 &&
        profile.rates.watchdogSeconds >= 0))
    return invalid(profile, "expects rates above zero");
  return llvm::Error::success();
}

std::vector<std::string> listProfiles() {
  std::vector<std::string> names;
  for (const EmbeddedProfile &profile : kEmbedded)
    names.push_back(profile.name.str());
  llvm::sort(names);
  return names;
}

llvm::Expected<TargetProfile> findProfile(llvm::StringRef name) {
  if (name.ends_with(".json")) {
    auto buffer = llvm::MemoryBuffer::getFile(name, /*IsText=*/true);
    if (!buffer)
      return llvm::createStringError("cannot read target profile '" + name +
                                     "': " + buffer.getError().message());
    return parseProfile((*buffer)->getBuffer(), name);
  }
  for (const EmbeddedProfile &profile : kEmbedded)
    if (profile.name == name)
      return parseProfile(profile.text, name.str() + ".json");
  return llvm::createStringError(
      "expects a target among " + llvm::join(listProfiles(), ", ") +
      ", or a profile file ending in .json, but got '" + name + "'");
}

} // namespace mlir::llm
