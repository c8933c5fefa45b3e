#include "tools/Support/Json.h"

#include <cmath>
#include <cstdio>

namespace sprig::tools {

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[16];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void Json::separate() {
  if (afterKey) {
    afterKey = false;
    return;
  }
  if (!first)
    out += ',';
  // Lists stay on one line; members of objects each get their own.
  if (!nesting.empty() && nesting.back() == '{')
    out += '\n' + std::string(2 * nesting.size(), ' ');
  else if (!first)
    out += ' ';
  first = false;
}

Json &Json::open(char bracket) {
  separate();
  out += bracket;
  nesting += bracket;
  first = true;
  return *this;
}

Json &Json::close() {
  char bracket = nesting.back();
  nesting.pop_back();
  if (bracket == '{' && !first)
    out += '\n' + std::string(2 * nesting.size(), ' ');
  out += bracket == '{' ? '}' : ']';
  first = false;
  return *this;
}

Json &Json::key(std::string_view name) {
  separate();
  out += jsonString(name) + ": ";
  afterKey = true;
  return *this;
}

Json &Json::value(std::string_view text) {
  separate();
  out += jsonString(text);
  return *this;
}

Json &Json::value(bool truth) {
  separate();
  out += truth ? "true" : "false";
  return *this;
}

Json &Json::value(double number) {
  separate();
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", number);
  out += std::isfinite(number) ? text : "null";
  return *this;
}

Json &Json::value(uint64_t number) {
  separate();
  out += std::to_string(number);
  return *this;
}

} // namespace sprig::tools
