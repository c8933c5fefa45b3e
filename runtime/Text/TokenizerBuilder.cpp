#include "runtime/Text/TokenizerBuilder.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <charconv>

namespace sprig {
namespace {

constexpr std::string_view kKnownEnds[] = {
    "<|eot_id|>",    "<|im_end|>",      "<|end|>",
    "<end_of_turn>", "<|endoftext|>",   "<|eom_id|>",
    "<EOT>",         "<|end_of_text|>", "<|return|>"};

/// GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes
/// for U+0100 onwards in their order. -1 where `code` is not of the alphabet.
int byteOfCode(uint32_t code) {
  const auto itself = [](uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD);
  };
  if (code < 0x100)
    return itself(code) ? static_cast<int>(code) : -1;
  if (code <= 0x120)
    return static_cast<int>(code - 0x100); // 00 … 20
  if (code <= 0x142)
    return static_cast<int>(code - 0x121 + 0x7F); // 7F … A0
  return code == 0x143 ? 0xAD : -1;
}

/// The byte of "<0x0A>", or -1.
int byteOfName(std::string_view text) {
  unsigned value = 0;
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>')
    return -1;
  const auto [end, error] =
      std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  return error == std::errc() && end == text.data() + 5
             ? static_cast<int>(value)
             : -1;
}

} // namespace

std::string decodeByteLevel(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    const int byte = c.valid ? byteOfCode(c.code) : -1;
    if (byte >= 0)
      out += static_cast<char>(byte);
    else
      out += text.substr(0, c.length);
    text.remove_prefix(c.length);
  }
  return out;
}

std::string replaceSpaceMarks(std::string_view text) {
  constexpr std::string_view mark = "\xE2\x96\x81"; // U+2581
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool is = text.substr(at).starts_with(mark);
    out += is ? ' ' : text[at];
    at += is ? mark.size() : 1;
  }
  return out;
}

void TokenizerBuilder::addToken(std::string_view text, TokenType type,
                                std::optional<float> score) {
  const auto id = static_cast<uint32_t>(tables.tokenTypes.size());
  ids.emplace(text, id); // the first of equals
  std::string bytes;
  if (type == TokenType::Byte && byteOfName(text) >= 0)
    bytes = static_cast<char>(byteOfName(text));
  else if (type != TokenType::Normal)
    bytes = text;
  else if (tables.kind == TokenizerKind::ByteBpe)
    bytes = decodeByteLevel(text);
  else
    bytes = replaceSpaceMarks(text);
  tables.tokenBytes.insert(tables.tokenBytes.end(), bytes.begin(), bytes.end());
  tables.tokenOffsets.push_back(
      static_cast<uint32_t>(tables.tokenBytes.size()));
  tables.tokenTypes.push_back(static_cast<uint8_t>(type));
  if (score)
    tables.scores.push_back(*score);
}

std::optional<uint32_t> TokenizerBuilder::find(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

Status TokenizerBuilder::addMerge(std::string_view merge) {
  const size_t space =
      merge.find(' ', 1); // a part may itself begin with a space
  if (space == std::string_view::npos || space + 1 == merge.size())
    return {StatusCode::Corrupt,
            "tokenizer: expects merge " +
                std::to_string(tables.mergeLeft.size()) +
                " to be two tokens with a space between, but got '" +
                std::string(merge) + "'"};
  return addMerge(merge.substr(0, space), merge.substr(space + 1));
}

Status TokenizerBuilder::addMerge(std::string_view left,
                                  std::string_view right) {
  const std::optional<uint32_t> a = find(left), b = find(right);
  if (!a || !b)
    return {StatusCode::Corrupt,
            "tokenizer: expects merge " +
                std::to_string(tables.mergeLeft.size()) +
                " to join tokens of the vocabulary, but '" +
                std::string(a ? right : left) + "' is none"};
  tables.mergeLeft.push_back(*a);
  tables.mergeRight.push_back(*b);
  return {};
}

void TokenizerBuilder::addEnd(uint32_t token) {
  if (std::find(tables.endTokens.begin(), tables.endTokens.end(), token) ==
      tables.endTokens.end())
    tables.endTokens.push_back(token);
}

bool isKnownEnd(std::string_view text) {
  for (const std::string_view name : kKnownEnds)
    if (text == name)
      return true;
  return false;
}

void TokenizerBuilder::addKnownEnds() {
  for (const std::string_view name : kKnownEnds)
    if (const std::optional<uint32_t> token = find(name))
      if (tables.tokenTypes[*token] == static_cast<uint8_t>(TokenType::Control))
        addEnd(*token);
}

} // namespace sprig
