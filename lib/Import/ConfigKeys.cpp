#include "lib/Import/ConfigKeys.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

/// Larger than any real model's sizes, small enough that a product of two of
/// them cannot wrap.
static constexpr int64_t kMostSize = int64_t(1) << 24;

const json *ConfigKeys::value(StringRef key) {
  known.insert(key);
  const auto at = object.find(key.str());
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

StringRef ConfigKeys::first(std::initializer_list<StringRef> keys) {
  StringRef found;
  for (StringRef key : keys)
    if (value(key) && found.empty())
      found = key;
  return found.empty() ? *keys.begin() : found;
}

void ConfigKeys::fail(StringRef key, const Twine &message) {
  if (failure.empty())
    failure = ("'" + path + "' " + place + key + " " + message).str();
}

/// A value for a message, cut where it is long.
static std::string shown(const json &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                json::error_handler_t::replace);
  if (text.size() > 40)
    text = text.substr(0, 40) + "…";
  return text;
}

void ConfigKeys::wrongType(StringRef key, StringRef expected,
                           const json &value) {
  fail(key, "expects " + expected + ", but got " + shown(value));
}

const json *ConfigKeys::needed(StringRef key, bool optional) {
  const json *found = value(key);
  if (!found && !optional)
    fail(key, "expects a value, but got none");
  return found;
}

int64_t ConfigKeys::size(StringRef key, std::optional<int64_t> absent,
                         int64_t least) {
  const json *found = needed(key, absent.has_value());
  if (!found)
    return absent.value_or(least);
  const bool fits = found->is_number_unsigned() &&
                    found->get<uint64_t>() <= uint64_t(kMostSize) &&
                    found->get<int64_t>() >= least;
  if (fits)
    return found->get<int64_t>();
  fail(key, "expects a whole number from " + Twine(least) + " to " +
                Twine(kMostSize) + ", but got " + shown(*found));
  return least;
}

double ConfigKeys::real(StringRef key, std::optional<double> absent) {
  const json *found = needed(key, absent.has_value());
  if (!found)
    return absent.value_or(1.0);
  if (found->is_number() && std::isfinite(found->get<double>()))
    return found->get<double>();
  wrongType(key, "a finite number", *found);
  return 1.0;
}

double ConfigKeys::positive(StringRef key, std::optional<double> absent) {
  const double number = real(key, absent);
  if (number > 0.0)
    return number;
  fail(key, "expects a positive number, but got " + std::to_string(number));
  return 1.0;
}

bool ConfigKeys::flag(StringRef key, bool absent) {
  const json *found = value(key);
  if (!found)
    return absent;
  if (!found->is_boolean()) {
    wrongType(key, "true or false", *found);
    return absent;
  }
  return found->get<bool>();
}

std::string ConfigKeys::text(StringRef key, std::optional<StringRef> absent) {
  const json *found = needed(key, absent.has_value());
  if (!found)
    return absent.value_or("").str();
  if (found->is_string())
    return found->get<std::string>();
  wrongType(key, "a text", *found);
  return "";
}

std::vector<std::string> ConfigKeys::texts(StringRef key) {
  std::vector<std::string> list;
  const json *found = value(key);
  if (found && !found->is_array())
    wrongType(key, "a list of texts", *found);
  if (found && found->is_array())
    for (const json &entry : *found) {
      if (!entry.is_string()) {
        wrongType(key, "a list of texts", *found);
        return {};
      }
      list.push_back(entry.get<std::string>());
    }
  return list;
}

std::vector<double> ConfigKeys::reals(StringRef key) {
  std::vector<double> list;
  const json *found = value(key);
  if (found && !found->is_array())
    wrongType(key, "a list of numbers", *found);
  if (found && found->is_array())
    for (const json &entry : *found) {
      if (!entry.is_number() || !std::isfinite(entry.get<double>())) {
        wrongType(key, "a list of finite numbers", *found);
        return {};
      }
      list.push_back(entry.get<double>());
    }
  return list;
}

const json *ConfigKeys::child(StringRef key) {
  const json *found = value(key);
  if (found && !found->is_object()) {
    wrongType(key, "an object", *found);
    return nullptr;
  }
  return found;
}

void ConfigKeys::ignore(std::initializer_list<StringRef> keys) {
  for (StringRef key : keys)
    known.insert(key);
}

/// Whether the value asks for nothing.
static bool saysNothing(const json &value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_number() && value.get<double>() == 0.0) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

void ConfigKeys::refuse(StringRef key, StringRef what) {
  const json *found = value(key);
  if (found && !saysNothing(*found))
    fail(key, "expects to be absent, for " + what +
                  " is not supported by this importer, but got " +
                  shown(*found));
}

void ConfigKeys::finish() {
  for (const auto &[key, entry] : object.items())
    if (!known.contains(key) && !saysNothing(entry) && !entry.is_string() &&
        !StringRef(key).starts_with("_"))
      fail(key, "expects to be a key that this importer knows, but got " +
                    shown(entry) +
                    ", whose meaning for the model would be lost");
}
