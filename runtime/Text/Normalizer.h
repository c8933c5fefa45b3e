//===- Normalizer.h - Unicode form C -------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace sprig {

/// `text`, which must be valid UTF-8, in Unicode normalisation form C.
std::string toFormC(std::string_view text);

} // namespace sprig
