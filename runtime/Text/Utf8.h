//===- Utf8.h - strict UTF-8, one character at a time --------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sprig {

/// One decoded character, or one unit of invalid bytes.
struct Utf8Char {
  uint32_t code = 0xFFFD; // U+FFFD where the bytes are invalid
  uint32_t length = 0;    // bytes taken: 1 … 4; 0 only for empty text
  bool valid = false;
  bool truncated = false; // invalid only because the text ends too early
};

/// Decodes the first character of `text`. Overlong forms, surrogates and codes
/// above U+10FFFF are invalid. Invalid bytes are taken a "maximal subpart" at a
/// time (Unicode 15, section 3.9), so one U+FFFD stands for as many bytes as in
/// other software.
Utf8Char decodeUtf8(std::string_view text);

/// Appends the UTF-8 form of `code`; U+FFFD where `code` is no character.
void appendUtf8(std::string &out, uint32_t code);

bool isValidUtf8(std::string_view text);

/// `text` with every invalid unit replaced by U+FFFD.
std::string sanitizeUtf8(std::string_view text);

} // namespace sprig
