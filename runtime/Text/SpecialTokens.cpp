#include "runtime/Text/SpecialTokens.h"

#include <algorithm>

namespace sprig {

SpecialTokens::SpecialTokens(const Vocabulary &vocabulary) {
  for (uint32_t token = 0; token < vocabulary.size(); ++token) {
    const TokenType type = vocabulary.type(token);
    if (type != TokenType::Control && type != TokenType::UserDefined)
      continue;
    const std::string_view text = vocabulary.bytes(token);
    if (text.empty())
      continue;
    sorted.push_back(token);
    first.set(static_cast<uint8_t>(text[0]));
  }
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
    const int order = vocabulary.bytes(a).compare(vocabulary.bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
}

std::optional<uint32_t> SpecialTokens::match(const Vocabulary &vocabulary,
                                             std::string_view text,
                                             size_t controlBytes) const {
  // The tokens that share the first `depth` bytes with the text are neighbours
  // in the sorted list; each further byte narrows the range. The shortest of a
  // range, if it ends here, comes first.
  std::optional<uint32_t> best;
  auto low = sorted.begin(), high = sorted.end();
  for (size_t depth = 0; depth < text.size(); ++depth) {
    const auto at =
        [&](uint32_t token) { // -1 where the token ends before this byte
          const std::string_view bytes = vocabulary.bytes(token);
          return depth < bytes.size() ? static_cast<uint8_t>(bytes[depth]) : -1;
        };
    const int byte = static_cast<uint8_t>(text[depth]);
    low = std::partition_point(low, high,
                               [&](uint32_t t) { return at(t) < byte; });
    high = std::partition_point(low, high,
                                [&](uint32_t t) { return at(t) == byte; });
    if (low == high)
      break;
    for (auto it = low; it != high && vocabulary.bytes(*it).size() == depth + 1;
         ++it) {
      const bool control = vocabulary.type(*it) == TokenType::Control;
      if (!control || depth + 1 <= controlBytes) {
        best = *it;
        break;
      }
    }
  }
  return best;
}

} // namespace sprig
