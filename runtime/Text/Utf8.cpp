#include "runtime/Text/Utf8.h"

namespace sprig {

Utf8Char decodeUtf8(std::string_view text) {
  Utf8Char out;
  if (text.empty())
    return out;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  out.length = 1;
  if (lead < 0x80) {
    out.code = lead;
    out.valid = true;
    return out;
  }

  // The second byte's range excludes overlong forms, surrogates and codes above
  // U+10FFFF, so that a sequence is known to be invalid at the first byte that
  // no valid sequence continues with.
  uint32_t more = 0, low = 0x80, high = 0xBF, code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1;
    code = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2;
    code = lead & 0x0Fu;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3;
    code = lead & 0x07u;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    return out;
  }
  for (uint32_t i = 1; i <= more; ++i) {
    if (i >= text.size()) {
      out.truncated = true;
      return out;
    }
    if (byte(i) < low || byte(i) > high)
      return out;
    code = code << 6 | (byte(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
    out.length = i + 1;
  }
  out.code = code;
  out.valid = true;
  return out;
}

void appendUtf8(std::string &out, uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
    code = 0xFFFD;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool isValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (!c.valid)
      return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::string sanitizeUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (c.valid)
      out.append(text.substr(0, c.length));
    else
      appendUtf8(out, 0xFFFD);
    text.remove_prefix(c.length);
  }
  return out;
}

} // namespace sprig
