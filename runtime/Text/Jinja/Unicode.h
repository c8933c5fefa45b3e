//===- Unicode.h - characters as Python's str sees them ------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sprig::jinja {

/// str.isspace.
bool isSpace(uint32_t code);

/// The text without the white space at its start or end.
std::string_view stripStart(std::string_view text);
std::string_view stripEnd(std::string_view text);

/// Characters of `text`, which must be valid UTF-8.
size_t countCharacters(std::string_view text);
/// Where each character begins, and the size of the text.
std::vector<size_t> characterOffsets(std::string_view text);

enum class Case { Upper, Lower, Title };
/// Appends `code` in another case (which may be two characters: ß is SS).
void appendCase(std::string &out, uint32_t code, Case which);

bool isUpper(uint32_t code);
bool isLower(uint32_t code);
bool isLetter(uint32_t code);
bool isDecimal(uint32_t code);

} // namespace sprig::jinja
