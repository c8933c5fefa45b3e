#include "runtime/Text/SentencePiece.h"
#include "runtime/Text/Utf8.h"

namespace sprig {

/// U+2581, SentencePiece's space.
static constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

std::string prepareSentence(const TokenizerData &data, std::string_view text) {
  std::string out;
  out.reserve(text.size() + 1);
  if (data.addSpacePrefix)
    out += ' ';
  for (size_t i = 0; i < text.size();) {
    const bool mark = text.substr(i).starts_with(kSpaceMark);
    const char c = mark ? ' ' : text[i];
    i += mark ? kSpaceMark.size() : 1;
    const bool repeated = c == ' ' && (out.empty() || out.back() == ' ');
    if (!data.removeExtraWhitespace || !repeated)
      out += c;
  }
  while (data.removeExtraWhitespace && !out.empty() && out.back() == ' ')
    out.pop_back();
  return out;
}

void SentencePiece::emit(const Vocabulary &vocabulary, std::string_view text,
                         const Symbol &symbol,
                         std::vector<uint32_t> &out) const {
  if (symbol.token != Symbol::kNone) {
    out.push_back(symbol.token);
    return;
  }
  bool whole = true;
  const std::string_view bytes = text.substr(symbol.begin, symbol.length);
  for (const char c : bytes)
    whole &= vocabulary.byteToken(c).has_value();
  if (whole) {
    for (const char c : bytes)
      out.push_back(*vocabulary.byteToken(c));
    return;
  }
  const int32_t unknown = vocabulary.tables().unknown;
  if (unknown >= 0 &&
      (out.empty() || out.back() != static_cast<uint32_t>(unknown)))
    out.push_back(static_cast<uint32_t>(
        unknown)); // a run of unknown characters is one token
}

void SentencePiece::encode(const Vocabulary &vocabulary, std::string_view text,
                           MergeScratch &scratch,
                           std::vector<uint32_t> &out) const {
  const TokenizerData &data = vocabulary.tables();
  std::vector<Symbol> &symbols = scratch.symbols;
  symbols.clear();
  for (size_t at = 0; at < text.size();) {
    const uint32_t length = decodeUtf8(text.substr(at)).length;
    const auto i = static_cast<uint32_t>(symbols.size());
    const uint32_t token =
        vocabulary.find(text.substr(at, length)).value_or(Symbol::kNone);
    symbols.push_back(
        {uint32_t(at), length, i ? i - 1 : Symbol::kNone, i + 1, token});
    at += length;
  }
  if (symbols.empty())
    return;
  symbols.back().next = Symbol::kNone;

  mergeSymbols(
      scratch, [&](const Symbol &a, const Symbol &b) -> std::optional<Merge> {
        const std::string_view both = text.substr(a.begin, a.length + b.length);
        if (const std::optional<uint32_t> token = vocabulary.find(both))
          return Merge{-double(data.scores[*token]), 0, 0, *token};
        return std::nullopt;
      });
  for (uint32_t i = 0; i != Symbol::kNone; i = symbols[i].next)
    emit(vocabulary, text, symbols[i], out);
}

} // namespace sprig
