//===- Letters.h - classes of characters, as tokenizers see them ---------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace sprig {

/// Unicode's White_Space.
bool isWhiteSpace(uint32_t code);
/// Letters, marks, decimal digits and connectors: \w.
bool isWordLetter(uint32_t code);
/// Combining marks, spacing and enclosing ones too.
bool isMark(uint32_t code);

/// Bytes of white space that `text` begins or ends with.
size_t spacesAtStart(std::string_view text);
size_t spacesAtEnd(std::string_view text);

/// Bytes of the first grapheme of `text`: what a reader takes for one letter.
size_t graphemeAtStart(std::string_view text);

/// Whether a word's letter is the first or the last of `text`.
bool startsWithWord(std::string_view text);
bool endsWithWord(std::string_view text);

} // namespace sprig
