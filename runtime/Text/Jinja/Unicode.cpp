#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <utf8proc.h>

namespace sprig::jinja {
namespace {

utf8proc_category_t category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

} // namespace

bool isSpace(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) ||
         code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view stripStart(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (!c.valid || !isSpace(c.code))
      break;
    text.remove_prefix(c.length);
  }
  return text;
}

std::string_view stripEnd(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 && (text[begin] & 0xC0) == 0x80)
      --begin;
    const Utf8Char c = decodeUtf8(text.substr(begin));
    if (!c.valid || !isSpace(c.code))
      break;
    text = text.substr(0, begin);
  }
  return text;
}

size_t countCharacters(std::string_view text) {
  size_t count = 0;
  for (const char c : text)
    count += (c & 0xC0) != 0x80;
  return count;
}

std::vector<size_t> characterOffsets(std::string_view text) {
  std::vector<size_t> out;
  for (size_t i = 0; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80)
      out.push_back(i);
  out.push_back(text.size());
  return out;
}

void appendCase(std::string &out, uint32_t code, Case which) {
  if (code == 0xDF && which != Case::Lower) {
    out += which == Case::Upper ? "SS" : "Ss";
    return;
  }
  const auto c = static_cast<utf8proc_int32_t>(code);
  const utf8proc_int32_t mapped = which == Case::Upper   ? utf8proc_toupper(c)
                                  : which == Case::Lower ? utf8proc_tolower(c)
                                                         : utf8proc_totitle(c);
  appendUtf8(out, static_cast<uint32_t>(mapped));
}

bool isUpper(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LU; }
bool isLower(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LL; }
bool isLetter(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}
bool isDecimal(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }

} // namespace sprig::jinja
