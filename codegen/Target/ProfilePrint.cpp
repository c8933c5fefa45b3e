// Profiles as JSON text.
#include "codegen/Target/Drivers.h"
#include "codegen/Target/TargetProfile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::llm {
namespace {

namespace json = llvm::json;

json::Value print(const ScheduleValue &value) {
  if (const int64_t *number = std::get_if<int64_t>(&value))
    return *number;
  return std::get<std::string>(value);
}

json::Value print(const ScheduleCondition &condition) {
  if (condition.anyOf.size() == 1)
    return print(condition.anyOf[0]);
  if (!condition.anyOf.empty()) {
    json::Array list;
    for (const ScheduleValue &value : condition.anyOf)
      list.push_back(print(value));
    return list;
  }
  json::Object range;
  if (condition.min)
    range["min"] = *condition.min;
  if (condition.max)
    range["max"] = *condition.max;
  return range;
}

std::string print(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

} // namespace

std::string printProfile(const TargetProfile &profile) {
  const TargetLimits &limits = profile.limits;
  json::Array features, faults, drivers;
  for (uint32_t driver : profile.drivers)
    drivers.push_back(driverName(driver));
  for (unsigned i = 0; i < kFeatureCount; ++i)
    if (profile.has(Feature(i)))
      features.push_back(featureName(Feature(i)));
  for (const TargetFault &fault : profile.faults)
    faults.push_back(
        json::Object{{"name", fault.name}, {"description", fault.description}});
  json::Object schedules;
  for (const auto &[family, rules] : profile.schedules) {
    json::Array list;
    for (const ScheduleRule &rule : rules) {
      json::Object object, when;
      for (const auto &[fact, condition] : rule.when)
        when[fact] = print(condition);
      if (!when.empty())
        object["when"] = std::move(when);
      for (const auto &[key, value] : rule.choices)
        object[key] = print(value);
      list.push_back(std::move(object));
    }
    schedules[family] = std::move(list);
  }
  json::Object spaces;
  for (const auto &[family, axes] : profile.spaces) {
    json::Object object;
    for (const auto &[choice, values] : axes) {
      json::Array list;
      for (const ScheduleValue &value : values)
        list.push_back(print(value));
      object[choice] = std::move(list);
    }
    spaces[family] = std::move(object);
  }
  json::Object root{
      {"name", profile.name},
      {"description", profile.description},
      {"drivers", std::move(drivers)},
      {"vulkan", print(profile.vulkan)},
      {"spirv", print(profile.spirv)},
      {"features", std::move(features)},
      {"subgroup_size", int64_t(profile.subgroupSize)},
      {"limits",
       json::Object{
           {"workgroup_invocations", int64_t(limits.workgroupInvocations)},
           {"workgroup_size", json::Array{int64_t(limits.workgroupSize[0]),
                                          int64_t(limits.workgroupSize[1]),
                                          int64_t(limits.workgroupSize[2])}},
           {"shared_bytes", int64_t(limits.sharedBytes)},
           {"storage_range", int64_t(limits.storageRange)},
           {"uniform_range", int64_t(limits.uniformRange)},
           {"texel_elements", int64_t(limits.texelElements)},
           {"groups", int64_t(limits.groups)},
           {"push_constant_bytes", int64_t(limits.pushConstantBytes)},
           {"storage_buffers", int64_t(limits.storageBuffers)},
           {"offset_alignment", int64_t(limits.offsetAlignment)}}},
      {"rates",
       json::Object{{"read_gb_per_s", profile.rates.readGbPerSecond},
                    {"gflop_per_s", profile.rates.gflopPerSecond},
                    {"dispatch_us", profile.rates.dispatchMicroseconds},
                    {"watchdog_s", profile.rates.watchdogSeconds}}},
      {"faults", std::move(faults)},
      {"token_tiles", json::Array(profile.tokenTiles)},
      {"widths", json::Array(profile.widths)},
      {"bit_equal_widths", profile.bitEqualWidths},
      {"schedules", std::move(schedules)},
      {"spaces", std::move(spaces)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(root))) << "\n";
  return text;
}

} // namespace mlir::llm
