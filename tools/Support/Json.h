//===- Json.h - writes one JSON value
//--------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sprig::tools {

/// Calls in the order of the text; commas, quotes and indentation are added.
///
///   Json json;
///   json.open('{');
///   json.key("tokens").open('[').value(1).value(2).close();
///   json.close();
class Json {
public:
  Json &open(char bracket); ///< '{' or '['
  Json &close();
  Json &key(std::string_view name);
  Json &value(std::string_view text);
  Json &value(const char *text) { return value(std::string_view(text)); }
  Json &value(const std::string &text) { return value(std::string_view(text)); }
  Json &value(bool truth);
  Json &value(double number);
  Json &value(uint64_t number);
  Json &value(uint32_t number) { return value(uint64_t(number)); }
  Json &value(int number) { return value(uint64_t(number)); }
  /// Key and value.
  template <class T> Json &pair(std::string_view name, const T &what) {
    key(name);
    return value(what);
  }

  const std::string &text() const { return out; }

private:
  void separate();

  std::string out;
  std::string nesting; ///< the brackets that are open
  bool first = true, afterKey = false;
};

/// `text` as a JSON string, quotes included.
std::string jsonString(std::string_view text);

} // namespace sprig::tools
