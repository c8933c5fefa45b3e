#include "runtime/Text/Normalizer.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <utf8proc.h>
#include <vector>

namespace sprig {
namespace {

int combiningClass(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

/// Orders each run of combining marks by class, equals as they came (Unicode
/// 15, section 3.11, D109).
void orderMarks(std::vector<utf8proc_int32_t> &codes) {
  std::vector<std::pair<uint64_t, utf8proc_int32_t>>
      run; // class and place; code
  for (size_t begin = 0; begin < codes.size(); begin += run.size() + 1) {
    run.clear();
    for (size_t i = begin; i < codes.size(); ++i) {
      const auto order = static_cast<uint64_t>(combiningClass(codes[i]));
      if (order == 0)
        break;
      run.emplace_back(order << 32 | run.size(), codes[i]);
    }
    std::sort(run.begin(), run.end());
    for (size_t i = 0; i < run.size(); ++i)
      codes[begin + i] = run[i].second;
  }
}

} // namespace

// utf8proc_map would do the whole in one call, but it orders combining marks by
// a sort that is quadratic in their number, and the text may come from anyone.
std::string toUnicodeForm(std::string_view text, bool compatible,
                          bool composed) {
  const auto isAscii = [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  };
  if (std::all_of(text.begin(), text.end(), isAscii))
    return std::string(text);

  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    utf8proc_int32_t parts[32]; // no character decomposes into more than 18
    int boundary = 0;
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c.code), parts, std::size(parts),
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE |
                                       (compatible ? UTF8PROC_COMPAT : 0)),
        &boundary);
    if (count > 0 && count <= static_cast<utf8proc_ssize_t>(std::size(parts)))
      codes.insert(codes.end(), parts, parts + count);
    else
      codes.push_back(static_cast<utf8proc_int32_t>(c.code));
    text.remove_prefix(c.length);
  }

  orderMarks(codes);
  auto length = static_cast<utf8proc_ssize_t>(codes.size());
  if (composed)
    length = utf8proc_normalize_utf32(
        codes.data(), length,
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    appendUtf8(out, static_cast<uint32_t>(codes[static_cast<size_t>(i)]));
  return out;
}

std::string toFormC(std::string_view text) {
  return toUnicodeForm(text, /*compatible=*/false, /*composed=*/true);
}

std::string toLowercase(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (c.code == 0x130) // the one letter whose lower case is two
      out += "i\xCC\x87";
    else
      appendUtf8(out, static_cast<uint32_t>(utf8proc_tolower(
                          static_cast<utf8proc_int32_t>(c.code))));
    text.remove_prefix(c.length);
  }
  return out;
}

} // namespace sprig
