#include "runtime/Text/CharsMap.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>

namespace sprig {
namespace {

// Published maps have keys of at most 12 bytes and texts of at most 33; a bound
// on both keeps the work and the growth of a hostile one in proportion.
constexpr size_t kLongestKey = 64, kLongestText = 256;

// A unit of the array: bit 8: the node ends a key, whose value is where the
// children begin; bits 0 to 7 and 31: the label, which a value has not; the
// rest: how far from here the children are.
bool endsKey(uint32_t unit) { return unit >> 8 & 1; }
uint32_t labelOf(uint32_t unit) { return unit & 0x800000FF; }
uint32_t stepOf(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

uint32_t readWord(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i)
    word |= uint32_t(static_cast<uint8_t>(bytes[at + i])) << 8 * i;
  return word;
}

Status corrupt(const std::string &message) {
  return {StatusCode::Corrupt, "tokenizer: precompiled_charsmap " + message};
}

} // namespace

Result<CharsMap> CharsMap::create(std::string_view bytes) {
  if (bytes.size() < 4)
    return corrupt("expects a trie and texts, but got " +
                   std::to_string(bytes.size()) + " bytes");
  const size_t length = readWord(bytes, 0);
  bytes.remove_prefix(4);
  if (length == 0 || length % 4 != 0 || length > bytes.size())
    return corrupt("expects a trie of whole words within its " +
                   std::to_string(bytes.size()) + " bytes, but got one of " +
                   std::to_string(length));
  CharsMap map;
  for (size_t at = 0; at < length; at += 4)
    map.units.push_back(readWord(bytes, at));
  map.texts = bytes.substr(length);
  if (!isValidUtf8(map.texts))
    return corrupt("expects texts of UTF-8, but got other bytes");
  for (size_t begin = 0; begin < map.texts.size();) {
    const size_t end = std::min(map.texts.find('\0', begin), map.texts.size());
    if (end - begin > kLongestText)
      return corrupt("expects texts of at most " +
                     std::to_string(kLongestText) + " bytes, but got " +
                     std::to_string(end - begin));
    begin = end + 1;
  }
  return map;
}

std::optional<CharsMap::Match> CharsMap::match(std::string_view text,
                                               bool longest) const {
  std::optional<Match> found;
  uint32_t node = stepOf(units[0]);
  const size_t end = std::min(text.size(), kLongestKey);
  for (size_t i = 0; i < end && text[i] != '\0'; ++i) {
    const uint32_t label = static_cast<uint8_t>(text[i]);
    node ^= label;
    if (node >= units.size() || labelOf(units[node]) != label)
      break;
    const bool ends = endsKey(units[node]);
    node ^= stepOf(units[node]);
    if (node >= units.size())
      break;
    if (!ends)
      continue;
    const size_t at = units[node] & 0x7FFFFFFF;
    const bool within = at < texts.size() &&
                        (static_cast<uint8_t>(texts[at]) & 0xC0) != 0x80;
    if (!within && at != texts.size())
      break;
    const std::string_view rest = std::string_view(texts).substr(at);
    found = {i + 1, rest.substr(0, rest.find('\0'))};
    if (!longest)
      break;
  }
  return found;
}

std::optional<std::string> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i)
    text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    uint32_t value = 0;
    if (c >= 'A' && c <= 'Z')
      value = uint32_t(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = uint32_t(c - 'a') + 26;
    else if (c >= '0' && c <= '9')
      value = uint32_t(c - '0') + 52;
    else if (c == '+' || c == '/')
      value = c == '+' ? 62 : 63;
    else
      return std::nullopt;
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

} // namespace sprig
