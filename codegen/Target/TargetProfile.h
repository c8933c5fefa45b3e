// A target is data: the limits, rates, faults and schedule choices of one kind
// of Vulkan device. Profiles are JSON files; those under Profiles/ are part of
// the library, others are read from disk. No kernel asks for a vendor: it asks
// for a feature, a limit or a schedule choice.
//
// The JSON object (description, drivers, faults, schedules, spaces, token_tiles,
// widths and bit_equal_widths may be left out, every other key is required, unknown keys are
// refused):
//
//   name, description  strings
//   drivers            names of Drivers.h: the runtime prefers the target on
//                      them, and another on the rest; none: no preference
//   vulkan, spirv      "major.minor": the versions a kernel may rely on
//   features           names of Feature, e.g. ["shader_int16"]
//   subgroup_size      lanes of a subgroup; 0: unknown, and then no feature of
//                      subgroups may be listed
//   limits             { workgroup_invocations, workgroup_size: [x, y, z],
//                      shared_bytes, storage_range, uniform_range,
//                      texel_elements, groups, push_constant_bytes,
//                      storage_buffers, offset_alignment }
//   rates              { read_gb_per_s, gflop_per_s, dispatch_us, watchdog_s? }:
//                      rough, for estimates of time only. A driver may give up
//                      on a submission after watchdog_s seconds (2 where it is
//                      left out; 0: never), so longer steps are split
//   faults             [{ name, description }]: known faults of drivers that
//                      schedules steer around
//   schedules          { family: [rule, …] }: see ScheduleRule
//   spaces             { family: { choice: [value, …] } }: what llm-tune tries
//   token_tiles        how many tokens one group of a product may work on: a
//                      kernel each, which steps of all widths share
//   widths             tokens of the steps that programs are made for, where
//                      the user asks for none
//   bit_equal_widths   true (the default): a token's numbers are the same bits
//                      in steps of any width; false: schedules may give that
//                      up, and llm-compile takes the target only by its name
#ifndef SPRIG_CODEGEN_TARGET_TARGETPROFILE_H
#define SPRIG_CODEGEN_TARGET_TARGETPROFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mlir::llm {

/// Optional abilities of a device, in the order of `sprig.format.Feature`
/// (runtime/Format/Package.fbs).
enum class Feature : uint8_t {
  ShaderInt8,
  ShaderInt16,
  ShaderInt64,
  ShaderFloat16,
  Storage8Bit,
  Storage16Bit,
  SubgroupBasic,
  SubgroupVote,
  SubgroupArithmetic,
  SubgroupBallot,
  SubgroupShuffle,
  IntegerDotProduct,
  CooperativeMatrix,
  SubgroupShuffleRelative,
  SubgroupClustered,
  Uniform8Bit,
  Uniform16Bit,
  ShaderFloat64,
  VulkanMemoryModel
};
inline constexpr unsigned kFeatureCount = 19;

/// `shader_int8` and so on; the spelling of profiles and packages.
llvm::StringRef featureName(Feature feature);
std::optional<Feature> featureByName(llvm::StringRef name);

struct Version {
  unsigned major = 1;
  unsigned minor = 1;
  auto operator<=>(const Version &) const = default;
};

struct TargetLimits {
  uint32_t workgroupInvocations = 128;
  std::array<uint32_t, 3> workgroupSize = {128, 128, 64};
  uint32_t sharedBytes = 16384;
  uint64_t storageRange =
      1u << 27; ///< bytes that one storage buffer binding may span
  uint32_t uniformRange =
      16384; ///< bytes that one uniform buffer binding may span
  uint32_t texelElements = 65536; ///< elements of one texel buffer view
  uint32_t groups = 65535; ///< workgroups in each dimension of a dispatch
  uint32_t pushConstantBytes = 128;
  uint32_t storageBuffers = 4; ///< bindings of one kernel
  uint32_t offsetAlignment = 256;
};

struct TargetRates {
  double readGbPerSecond = 1;
  double gflopPerSecond = 1;
  double dispatchMicroseconds = 20;
  double watchdogSeconds = 2; ///< 0: none
};

struct TargetFault {
  std::string name;
  std::string description;
};

/// A number or a word: what a kernel's facts and a schedule's choices are made
/// of.
using ScheduleValue = std::variant<int64_t, std::string>;
using ScheduleValues = std::map<std::string, ScheduleValue, std::less<>>;

/// The values that a choice may take, the likeliest first.
using ScheduleAxis = std::vector<ScheduleValue>;
/// The choices of a family that are worth measuring: see "spaces".
using ScheduleSpace = std::map<std::string, ScheduleAxis, std::less<>>;

/// What a rule asks of one fact: to be one of `anyOf`, or (numbers) to lie
/// between `min` and `max`, both included.
struct ScheduleCondition {
  std::vector<ScheduleValue> anyOf;
  std::optional<int64_t> min, max;
  bool holds(const ScheduleValue &fact) const;
};

/// `{"when": {fact: 4 | "word" | [4, "word"] | {"min": 1, "max": 9}}, choice:
/// value, …}`. A rule without `when` always applies; a condition on a fact that
/// the kernel does not have never holds.
struct ScheduleRule {
  std::map<std::string, ScheduleCondition, std::less<>> when;
  ScheduleValues choices;
};

struct TargetProfile {
  std::string name;
  std::string description;
  Version vulkan, spirv{1, 3};
  uint32_t features = 0; ///< bit f = Feature(f)
  std::vector<uint32_t> drivers; ///< VkDriverId: see Drivers.h
  uint32_t subgroupSize = 0;
  TargetLimits limits;
  TargetRates rates;
  std::vector<TargetFault> faults;
  std::vector<int64_t> tokenTiles = {1, 2, 4, 8};
  std::vector<int64_t> widths = {1, 2, 4, 8, 16, 32, 64};
  bool bitEqualWidths = true;
  std::map<std::string, std::vector<ScheduleRule>, std::less<>> schedules;
  std::map<std::string, ScheduleSpace, std::less<>> spaces;

  bool has(Feature feature) const { return features >> unsigned(feature) & 1; }
  bool hasFault(llvm::StringRef name) const;
  /// Lanes can exchange values without shared memory: the subgroup's size is
  /// known and it can shuffle.
  bool canShuffle() const {
    return subgroupSize != 0 && has(Feature::SubgroupShuffle);
  }

  /// The choices of the first rule of `family` whose conditions all hold, or
  /// none.
  const ScheduleValues *findSchedule(llvm::StringRef family,
                                     const ScheduleValues &facts) const;

  /// The tile for a step of `tokens`: the cheapest cover, where reading a
  /// weight costs as much as what is computed with it for some tokens.
  int64_t tokenTile(int64_t tokens) const;

  /// Rough seconds of a dispatch that touches `bytes` and does `macs`
  /// multiply-adds: the slower of the two, plus the cost of a dispatch.
  double estimateSeconds(uint64_t bytes, uint64_t macs) const;
  /// What one submission may take by such estimates, which may be wrong by a
  /// factor of four; 0: any time.
  double submissionSeconds() const { return rates.watchdogSeconds / 4; }
};

/// Reads one profile. `source` names the text in errors, which say "expects X,
/// but got Y".
llvm::Expected<TargetProfile> parseProfile(llvm::StringRef text,
                                           llvm::StringRef source);
/// The JSON text that `parseProfile` reads back to an equal profile.
std::string printProfile(const TargetProfile &profile);
/// What no single field can say: consistent features, limits at least those
/// that Vulkan guarantees.
llvm::Error validateProfile(const TargetProfile &profile);

/// Names of the profiles in the library, in alphabetical order.
std::vector<std::string> listProfiles();
/// A profile of the library by name, or, if `name` ends in `.json`, that file.
llvm::Expected<TargetProfile> findProfile(llvm::StringRef name);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_TARGET_TARGETPROFILE_H
