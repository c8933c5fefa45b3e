//===- StopStrings.h - ends a text where one of some strings begins
//-------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sprig {

/// Filters a text that arrives in pieces. What could be the beginning of a stop
/// string is held back until it is known not to be one.
class StopStrings {
public:
  /// Empty strings stop nothing.
  explicit StopStrings(std::vector<std::string> strings);

  /// Takes the next piece and returns what may be shown. Once `stopped`, the
  /// text is complete: what came before the first stop string.
  std::string push(std::string_view piece);
  /// What was held back, when the text ends for another reason.
  std::string finish();
  bool stopped() const { return found; }

private:
  std::vector<std::string> strings;
  std::string held;
  bool found = false;
};

} // namespace sprig
