// Profiles from JSON text: strict reading, where unknown keys and wrong types
// are errors that name the place.
#include "codegen/Target/Drivers.h"
#include "codegen/Target/TargetProfile.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::llm {
namespace {

namespace json = llvm::json;

std::string describe(const json::Value *value) {
  if (!value)
    return "nothing";
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

/// Reads the members of one object, remembers the first error, and at the end
/// refuses members that nobody read.
class Reader {
public:
  Reader(const json::Object &object, std::string path, std::string &error)
      : object(object), path(std::move(path)), error(error) {}

  ~Reader() {
    for (const auto &member : object)
      if (!seen.contains(llvm::StringRef(member.first)))
        fail("has an unknown key '" + llvm::StringRef(member.first).str() +
             "'");
  }

  const json::Value *get(llvm::StringRef key) {
    seen.insert(key);
    return object.get(key);
  }

  void text(llvm::StringRef key, std::string &into, bool required = true) {
    const json::Value *value = get(key);
    if (!value && !required)
      return;
    auto read = value ? value->getAsString() : std::nullopt;
    if (!read)
      return expected("a string", key, value);
    into = read->str();
  }

  template <typename Int> void number(llvm::StringRef key, Int &into) {
    const json::Value *value = get(key);
    auto read = value ? value->getAsInteger() : std::nullopt;
    if (!read || *read < 0 || uint64_t(*read) > std::numeric_limits<Int>::max())
      return expected("a whole number", key, value);
    into = Int(*read);
  }

  void real(llvm::StringRef key, double &into, bool required = true) {
    const json::Value *value = get(key);
    if (!value && !required)
      return;
    auto read = value ? value->getAsNumber() : std::nullopt;
    if (!read)
      return expected("a number", key, value);
    into = *read;
  }

  void truth(llvm::StringRef key, bool &into) {
    const json::Value *value = get(key);
    auto read = value ? value->getAsBoolean() : std::optional(into);
    if (!read)
      return expected("true or false", key, value);
    into = *read;
  }

  void version(llvm::StringRef key, Version &into) {
    std::string words;
    text(key, words);
    auto [major, minor] = llvm::StringRef(words).split('.');
    if (major.getAsInteger(10, into.major) ||
        minor.getAsInteger(10, into.minor))
      expected("a version such as \"1.3\"", key, object.get(key));
  }

  const json::Object *child(llvm::StringRef key, bool required = true) {
    const json::Value *value = get(key);
    if (!value && !required)
      return nullptr;
    const json::Object *read = value ? value->getAsObject() : nullptr;
    if (!read)
      expected("an object", key, value);
    return read;
  }

  const json::Array *list(llvm::StringRef key, bool required = true) {
    const json::Value *value = get(key);
    if (!value && !required)
      return nullptr;
    const json::Array *read = value ? value->getAsArray() : nullptr;
    if (!read)
      expected("a list", key, value);
    return read;
  }

  void expected(llvm::StringRef what, llvm::StringRef key,
                const json::Value *value) {
    fail("expects " + what.str() + " for '" + key.str() + "', but got " +
         describe(value));
  }

  void fail(std::string message) {
    if (error.empty())
      error = path + " " + message;
  }

private:
  const json::Object &object;
  std::string path;
  std::string &error;
  llvm::StringSet<> seen;
};

std::optional<ScheduleValue> readScheduleValue(const json::Value &value) {
  if (auto number = value.getAsInteger())
    return *number;
  if (auto word = value.getAsString())
    return word->str();
  return std::nullopt;
}

void readCondition(Reader &when, llvm::StringRef fact, const json::Value &value,
                   ScheduleCondition &into, const std::string &path,
                   std::string &error) {
  if (auto single = readScheduleValue(value)) {
    into.anyOf.push_back(*single);
  } else if (const json::Array *list = value.getAsArray()) {
    for (const json::Value &element : *list) {
      auto read = readScheduleValue(element);
      if (!read)
        return when.expected("whole numbers and strings", fact, &element);
      into.anyOf.push_back(*read);
    }
    if (list->empty())
      when.expected("at least one value", fact, &value);
  } else if (const json::Object *range = value.getAsObject()) {
    Reader reader(*range, path + "." + fact.str(), error);
    for (auto [key, bound] :
         {std::pair("min", &into.min), std::pair("max", &into.max)})
      if (const json::Value *member = reader.get(key)) {
        *bound = member->getAsInteger();
        if (!*bound)
          reader.expected("a whole number", key, member);
      }
    if (!into.min && !into.max)
      reader.fail("expects 'min' or 'max'");
  } else {
    when.expected("a value, a list or a range", fact, &value);
  }
}

ScheduleRule readRule(const json::Object &object, const std::string &path,
                      std::string &error) {
  ScheduleRule rule;
  Reader reader(object, path, error);
  if (const json::Object *conditions =
          reader.child("when", /*required=*/false)) {
    Reader when(*conditions, path + ".when", error);
    for (const auto &member : *conditions) {
      llvm::StringRef fact(member.first);
      when.get(fact);
      readCondition(when, fact, member.second, rule.when[fact.str()],
                    path + ".when", error);
    }
  }
  for (const auto &member : object) {
    llvm::StringRef key(member.first);
    if (key == "when")
      continue;
    const json::Value *value = reader.get(key);
    if (auto read = readScheduleValue(*value))
      rule.choices[key.str()] = *read;
    else
      reader.expected("a whole number or a string", key, value);
  }
  return rule;
}

void readLimits(const json::Object &object, TargetLimits &limits,
                const std::string &path, std::string &error) {
  Reader reader(object, path, error);
  reader.number("workgroup_invocations", limits.workgroupInvocations);
  reader.number("shared_bytes", limits.sharedBytes);
  reader.number("storage_range", limits.storageRange);
  reader.number("uniform_range", limits.uniformRange);
  reader.number("texel_elements", limits.texelElements);
  reader.number("groups", limits.groups);
  reader.number("push_constant_bytes", limits.pushConstantBytes);
  reader.number("storage_buffers", limits.storageBuffers);
  reader.number("offset_alignment", limits.offsetAlignment);
  const json::Array *size = reader.list("workgroup_size");
  if (!size)
    return;
  for (unsigned i = 0; i < 3; ++i) {
    auto read = size->size() == 3 ? (*size)[i].getAsInteger() : std::nullopt;
    if (!read || *read < 0 || *read > std::numeric_limits<uint32_t>::max())
      return reader.expected("three whole numbers", "workgroup_size",
                             object.get("workgroup_size"));
    limits.workgroupSize[i] = uint32_t(*read);
  }
}

/// { family: { choice: [value, …] } }
void readSpaces(const json::Object &families, TargetProfile &profile,
                const std::string &path, std::string &error) {
  Reader places(families, path, error);
  for (const auto &family : families) {
    llvm::StringRef name(family.first);
    const json::Object *axes = places.child(name);
    if (!axes)
      return;
    Reader reader(*axes, path + "." + name.str(), error);
    for (const auto &axis : *axes) {
      llvm::StringRef choice(axis.first);
      const json::Array *list = reader.list(choice);
      if (!list)
        return;
      if (list->empty())
        return reader.expected("at least one value", choice, axes->get(choice));
      ScheduleAxis &into = profile.spaces[name.str()][choice.str()];
      for (const json::Value &value : *list)
        if (auto read = readScheduleValue(value))
          into.push_back(*read);
        else
          return reader.expected("whole numbers and strings", choice, &value);
    }
  }
}

void readLists(Reader &reader, const json::Object &root, TargetProfile &profile,
               const std::string &source, std::string &error) {
  if (const json::Array *features = reader.list("features"))
    for (const json::Value &value : *features) {
      auto feature = featureByName(value.getAsString().value_or(""));
      if (!feature)
        reader.expected("names of features", "features", &value);
      else
        profile.features |= 1u << unsigned(*feature);
    }
  if (const json::Array *drivers = reader.list("drivers", /*required=*/false))
    for (const json::Value &value : *drivers) {
      auto driver = driverByName(value.getAsString().value_or(""));
      if (!driver)
        reader.expected("names of drivers, such as \"mesa_radv\"", "drivers",
                        &value);
      else
        profile.drivers.push_back(*driver);
    }
  for (auto [key, into] : {std::pair("token_tiles", &profile.tokenTiles),
                           {"widths", &profile.widths}})
    if (const json::Array *list = reader.list(key, /*required=*/false)) {
      into->clear();
      for (const json::Value &value : *list) {
        if (!value.getAsInteger())
          return reader.expected("whole numbers", key, &value);
        into->push_back(*value.getAsInteger());
      }
    }
  if (const json::Array *faults = reader.list("faults", /*required=*/false))
    for (const json::Value &value : *faults) {
      const json::Object *object = value.getAsObject();
      if (!object)
        return reader.expected("objects", "faults", &value);
      Reader fault(*object, source + " faults", error);
      TargetFault &known = profile.faults.emplace_back();
      fault.text("name", known.name);
      fault.text("description", known.description);
    }
  if (const json::Object *families = reader.child("spaces", /*required=*/false))
    readSpaces(*families, profile, source + " spaces", error);
  if (const json::Object *families =
          reader.child("schedules", /*required=*/false))
    for (const auto &family : *families) {
      llvm::StringRef name(family.first);
      std::string path = source + " schedules." + name.str();
      const json::Array *rules = family.second.getAsArray();
      if (!rules)
        return reader.expected("a list of rules", name, &family.second);
      for (const auto &[index, rule] : llvm::enumerate(*rules)) {
        const json::Object *object = rule.getAsObject();
        if (!object)
          return reader.expected("rules that are objects", name, &rule);
        profile.schedules[name.str()].push_back(
            readRule(*object, path + "[" + std::to_string(index) + "]", error));
      }
    }
}

} // namespace

llvm::Expected<TargetProfile> parseProfile(llvm::StringRef text,
                                           llvm::StringRef source) {
  llvm::Expected<json::Value> root = json::parse(text);
  if (!root)
    return llvm::createStringError(
        "target profile '" + source +
        "' is not JSON: " + llvm::toString(root.takeError()));
  const json::Object *object = root->getAsObject();
  if (!object)
    return llvm::createStringError("target profile '" + source +
                                   "' expects an object, but got " +
                                   describe(&*root));

  TargetProfile profile;
  std::string error, path = "target profile '" + source.str() + "'";
  {
    Reader reader(*object, path, error);
    reader.text("name", profile.name);
    reader.text("description", profile.description, /*required=*/false);
    reader.version("vulkan", profile.vulkan);
    reader.version("spirv", profile.spirv);
    reader.number("subgroup_size", profile.subgroupSize);
    reader.truth("bit_equal_widths", profile.bitEqualWidths);
    if (const json::Object *limits = reader.child("limits"))
      readLimits(*limits, profile.limits, path + " limits", error);
    if (const json::Object *rates = reader.child("rates")) {
      Reader rate(*rates, path + " rates", error);
      rate.real("read_gb_per_s", profile.rates.readGbPerSecond);
      rate.real("gflop_per_s", profile.rates.gflopPerSecond);
      rate.real("dispatch_us", profile.rates.dispatchMicroseconds);
      rate.real("watchdog_s", profile.rates.watchdogSeconds,
                /*required=*/false);
    }
    readLists(reader, *object, profile, path, error);
  }
  if (!error.empty())
    return llvm::createStringError(error);
  if (llvm::Error problem = validateProfile(profile))
    return std::move(problem);
  return profile;
}

} // namespace mlir::llm
