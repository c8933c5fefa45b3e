#include "runtime/Text/BytePair.h"
#include "runtime/Text/Utf8.h"

#include <bit>

namespace sprig {

uint64_t BytePair::hash(uint32_t left, uint32_t right) {
  const uint64_t pair = (uint64_t(left) << 32 | right) * 0x9E3779B97F4A7C15u;
  return pair ^ pair >> 32;
}

BytePair::BytePair(const Vocabulary &vocabulary) {
  for (size_t byte = 0; byte < byteTokens.size(); ++byte) {
    const char text = static_cast<char>(byte);
    byteTokens[byte] = vocabulary.find({&text, 1}).value_or(Symbol::kNone);
  }

  const TokenizerData &data = vocabulary.tables();
  const size_t count = data.mergeLeft.size();
  slots.assign(std::bit_ceil(count * 2 + 1), 0);
  merged.assign(count, Symbol::kNone);
  const size_t mask = slots.size() - 1;
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t left = data.mergeLeft[i], right = data.mergeRight[i];
    text = vocabulary.bytes(left);
    text += vocabulary.bytes(right);
    // A merge whose text is a control token's, or nobody's, makes nothing: text
    // stays text.
    const std::optional<uint32_t> token = vocabulary.find(text);
    if (!token)
      continue;
    merged[i] = *token;
    size_t at = hash(left, right) & mask;
    const auto same = [&](uint32_t m) {
      return data.mergeLeft[m] == left && data.mergeRight[m] == right;
    };
    while (slots[at] != 0 && !same(slots[at] - 1))
      at = (at + 1) & mask;
    if (slots[at] == 0) // of equal merges the first counts
      slots[at] = i + 1;
  }
}

/// Lengths only tell parts that have grown from those that have not, so each
/// symbol counts as one.
static void addSymbol(std::vector<Symbol> &symbols, uint32_t token) {
  const auto i = static_cast<uint32_t>(symbols.size());
  symbols.push_back({i, 1, i ? i - 1 : Symbol::kNone, i + 1, token});
}

void BytePair::addLetters(const Vocabulary &vocabulary, std::string_view word,
                          std::vector<Symbol> &symbols) const {
  const TokenizerData &data = vocabulary.tables();
  bool unknownBefore = false;
  for (size_t at = 0; at < word.size();) {
    const std::string_view letter =
        word.substr(at, decodeUtf8(word.substr(at)).length);
    at += letter.size();
    const std::optional<uint32_t> token = vocabulary.find(letter);
    bool bytes = !token && data.byteFallback;
    for (const char c : letter)
      bytes = bytes && vocabulary.byteToken(c);
    if (token)
      addSymbol(symbols, *token);
    else if (bytes)
      for (const char c : letter)
        addSymbol(symbols, *vocabulary.byteToken(c));
    else if (data.unknown >= 0 && !(data.fuseUnknown && unknownBefore))
      addSymbol(symbols, static_cast<uint32_t>(data.unknown));
    unknownBefore = !token && !bytes;
  }
}

void BytePair::encode(const Vocabulary &vocabulary, std::string_view word,
                      MergeScratch &scratch, std::vector<uint32_t> &out) const {
  const TokenizerData &data = vocabulary.tables();
  if (data.ignoreMerges) {
    if (const std::optional<uint32_t> token = vocabulary.find(word)) {
      out.push_back(*token);
      return;
    }
  }

  std::vector<Symbol> &symbols = scratch.symbols;
  symbols.clear();
  if (data.kind == TokenizerKind::CharBpe) {
    addLetters(vocabulary, word, symbols);
  } else {
    for (const char c : word)
      if (const uint32_t token = byteTokens[static_cast<uint8_t>(c)];
          token != Symbol::kNone)
        addSymbol(symbols, token);
  }
  if (symbols.empty())
    return;
  symbols.back().next = Symbol::kNone;

  const size_t mask = slots.size() - 1;
  mergeSymbols(
      scratch, [&](const Symbol &a, const Symbol &b) -> std::optional<Merge> {
        for (size_t at = hash(a.token, b.token) & mask; slots[at] != 0;
             at = (at + 1) & mask) {
          const uint32_t m = slots[at] - 1;
          if (data.mergeLeft[m] == a.token && data.mergeRight[m] == b.token)
            return Merge{double(m), 0, 0, merged[m]};
        }
        return std::nullopt;
      });
  for (uint32_t i = 0; i != Symbol::kNone; i = symbols[i].next)
    out.push_back(symbols[i].token);
}

} // namespace sprig
