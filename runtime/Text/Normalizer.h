//===- Normalizer.h - forms and cases of Unicode -------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace sprig {

/// `text`, which must be valid UTF-8, in Unicode normalisation form C.
std::string toFormC(std::string_view text);

/// Any of the four forms: C or D (`composed` or not), KC or KD (`compatible`).
std::string toUnicodeForm(std::string_view text, bool compatible,
                          bool composed);

/// Each character in lower case.
std::string toLowercase(std::string_view text);

} // namespace sprig
