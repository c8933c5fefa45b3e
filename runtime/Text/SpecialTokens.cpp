#include "runtime/Text/SpecialTokens.h"

#include <algorithm>

namespace sprig {

void SpecialTokens::add(uint32_t token, std::string text, bool control) {
  if (text.empty())
    return;
  first.set(static_cast<uint8_t>(text[0]));
  sorted.push_back({texts.emplace_back(std::move(text)), token, control});
}

void SpecialTokens::finish() {
  std::sort(sorted.begin(), sorted.end(), [](const Entry &a, const Entry &b) {
    const int order = a.text.compare(b.text);
    return order != 0 ? order < 0 : a.token < b.token;
  });
}

std::optional<SpecialTokens::Match>
SpecialTokens::match(std::string_view text, size_t controlBytes) const {
  // The tokens that share the first `depth` bytes with the text are neighbours
  // in the sorted list; each further byte narrows the range. The shortest of a
  // range, if it ends here, comes first.
  std::optional<Match> best;
  auto low = sorted.begin(), high = sorted.end();
  for (size_t depth = 0; depth < text.size(); ++depth) {
    // -1 where the token ends before this byte
    const auto at = [&](const Entry &entry) {
      return depth < entry.text.size() ? static_cast<uint8_t>(entry.text[depth])
                                       : -1;
    };
    const int byte = static_cast<uint8_t>(text[depth]);
    low = std::partition_point(low, high,
                               [&](const Entry &e) { return at(e) < byte; });
    high = std::partition_point(low, high,
                                [&](const Entry &e) { return at(e) == byte; });
    if (low == high)
      break;
    for (auto it = low; it != high && it->text.size() == depth + 1; ++it) {
      if (!it->control || depth + 1 <= controlBytes) {
        best = Match{it->token, depth + 1};
        break;
      }
    }
  }
  return best;
}

} // namespace sprig
