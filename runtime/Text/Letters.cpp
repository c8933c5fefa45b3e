#include "runtime/Text/Letters.h"
#include "runtime/Text/Utf8.h"

#include <utf8proc.h>

namespace sprig {
namespace {

utf8proc_category_t category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

/// The last character of `text`, which is not empty.
Utf8Char lastOf(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && (text[begin] & 0xC0) == 0x80)
    --begin;
  return decodeUtf8(text.substr(begin));
}

} // namespace

bool isWhiteSpace(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

size_t graphemeAtStart(std::string_view text) {
  utf8proc_int32_t state = 0;
  Utf8Char before = decodeUtf8(text);
  size_t length = before.length;
  while (length < text.size()) {
    const Utf8Char next = decodeUtf8(text.substr(length));
    if (utf8proc_grapheme_break_stateful(
            static_cast<utf8proc_int32_t>(before.code),
            static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    length += next.length;
    before = next;
  }
  return length;
}

bool isMark(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
         c == UTF8PROC_CATEGORY_ME;
}

bool isWordLetter(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
         isMark(code) || c == UTF8PROC_CATEGORY_ND ||
         c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC;
}

size_t spacesAtStart(std::string_view text) {
  const std::string_view all = text;
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (!c.valid || !isWhiteSpace(c.code))
      break;
    text.remove_prefix(c.length);
  }
  return all.size() - text.size();
}

size_t spacesAtEnd(std::string_view text) {
  const std::string_view all = text;
  while (!text.empty()) {
    const Utf8Char c = lastOf(text);
    if (!c.valid || !isWhiteSpace(c.code))
      break;
    text.remove_suffix(c.length);
  }
  return all.size() - text.size();
}

bool startsWithWord(std::string_view text) {
  return !text.empty() && isWordLetter(decodeUtf8(text).code);
}

bool endsWithWord(std::string_view text) {
  return !text.empty() && isWordLetter(lastOf(text).code);
}

} // namespace sprig
