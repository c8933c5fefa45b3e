//===- Strings.h - messages from parts
//---------------------------------------===//
//
// The standard library of the oldest supported compiler (GCC 12) has no
// std::format; messages are joined from their parts instead.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace sprig {

template <class T> void appendPart(std::string &out, const T &part) {
  if constexpr (std::is_same_v<T, bool>)
    out += part ? "true" : "false";
  else if constexpr (std::is_same_v<T, char>)
    out += part;
  else if constexpr (std::is_integral_v<T>)
    out += std::to_string(part);
  else if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", double(part));
    out += text;
  } else
    out += std::string_view(part);
}

/// "expects ", 3, " rows" → one string.
template <class... Parts> std::string concat(const Parts &...parts) {
  std::string out;
  (appendPart(out, parts), ...);
  return out;
}

/// 1536 → "1.5 KiB"; for messages, never for parsing.
inline std::string humanBytes(unsigned long long bytes) {
  const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  char text[48];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

/// Lower-case hexadecimal of `bytes` bytes.
inline std::string hex(const void *data, size_t bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes; ++i) {
    unsigned char byte = static_cast<const unsigned char *>(data)[i];
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

} // namespace sprig
