#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Normalizer.h"
#include "runtime/Text/TokenStream.h"
#include "runtime/Text/Utf8.h"

namespace sprig {
namespace {

// Positions are 32-bit in the merge loop; nobody's context holds a text near
// this.
constexpr size_t kMaxText = size_t(1) << 30;

} // namespace

struct Tokenizer::Scratch {
  MergeScratch merge;
  std::vector<std::string_view> words;
};

Tokenizer::Tokenizer(Vocabulary checked, PreTokenizer pre)
    : vocabulary(std::move(checked)), specials(vocabulary),
      preTokenizer(std::move(pre)) {
  if (vocabulary.tables().kind == TokenizerKind::ByteBpe)
    bytePair.emplace(vocabulary);
  else
    sentencePiece.emplace(vocabulary);
}

Result<Tokenizer> Tokenizer::create(const TokenizerData &data) {
  if (data.kind != TokenizerKind::ByteBpe &&
      data.kind != TokenizerKind::SentencePiece)
    return Status(StatusCode::Unsupported,
                  "tokenizer: expects byte-level BPE or SentencePiece BPE, but "
                  "got kind " +
                      std::to_string(int(data.kind)));
  Result<Vocabulary> vocabulary = Vocabulary::create(data);
  if (!vocabulary.ok())
    return vocabulary.status();
  PreTokenizer pre;
  if (data.kind == TokenizerKind::ByteBpe) {
    Result<PreTokenizer> found = PreTokenizer::create(data.pre);
    if (!found.ok())
      return found.status();
    pre = std::move(*found);
  }
  return Tokenizer(std::move(*vocabulary), std::move(pre));
}

Status Tokenizer::encodePlain(std::string_view text, bool first,
                              Scratch &scratch,
                              std::vector<uint32_t> &out) const {
  if (text.empty())
    return {};
  std::string cleaned;
  if (!isValidUtf8(text))
    text = cleaned = sanitizeUtf8(text);
  if (sentencePiece) {
    sentencePiece->encode(vocabulary, text, first, scratch.merge, out);
    return {};
  }
  if (preTokenizer.nfc())
    text = cleaned = toFormC(text);
  if (Status s = preTokenizer.split(text, scratch.words); !s)
    return s;
  for (const std::string_view word : scratch.words)
    bytePair->encode(vocabulary, word, scratch.merge, out);
  return {};
}

Status Tokenizer::encodeMarked(std::string_view text,
                               std::span<const Stretch> trusted,
                               std::vector<uint32_t> &out) const {
  if (text.size() > kMaxText)
    return {StatusCode::InvalidArgument,
            "tokenizer: expects at most " + std::to_string(kMaxText) +
                " bytes of text, but got " + std::to_string(text.size())};
  Scratch scratch;
  size_t plain = 0;
  bool first = true;
  for (size_t at = 0; at < text.size();) {
    while (!trusted.empty() && trusted.front().end <= at)
      trusted = trusted.subspan(1);
    const bool inside = !trusted.empty() && trusted.front().begin <= at;
    std::optional<uint32_t> token;
    if (specials.startsWith(text[at]))
      token = specials.match(vocabulary, text.substr(at),
                             inside ? trusted.front().end - at : 0);
    if (!token) {
      ++at;
      continue;
    }
    if (Status s =
            encodePlain(text.substr(plain, at - plain), first, scratch, out);
        !s)
      return s;
    out.push_back(*token);
    first =
        true; // as sentence pieces see it, a special token begins a new text
    at += vocabulary.bytes(*token).size();
    plain = at;
  }
  return encodePlain(text.substr(plain), first, scratch, out);
}

Result<std::vector<uint32_t>> Tokenizer::encode(std::string_view text,
                                                bool special) const {
  const Stretch all{0, text.size()};
  std::vector<uint32_t> out;
  if (Status s = encodeMarked(text, std::span(&all, special ? 1 : 0), out); !s)
    return s;
  return out;
}

Result<std::vector<uint32_t>>
Tokenizer::encode(std::span<const TextSegment> segments) const {
  std::string text;
  std::vector<Stretch> trusted; // neighbours become one stretch
  for (const TextSegment &segment : segments) {
    const Stretch here{text.size(), text.size() + segment.text.size()};
    text += segment.text;
    if (!segment.trusted)
      continue;
    if (!trusted.empty() && trusted.back().end == here.begin)
      trusted.back().end = here.end;
    else
      trusted.push_back(here);
  }
  std::vector<uint32_t> out;
  if (Status s = encodeMarked(text, trusted, out); !s)
    return s;
  return out;
}

std::string Tokenizer::decode(std::span<const uint32_t> tokens,
                              DecodeOptions options) const {
  TokenStream stream(*this, options);
  std::string out;
  for (const uint32_t token : tokens)
    out += stream.push(token);
  return out += stream.finish();
}

bool Tokenizer::isEnd(uint32_t token) const {
  const auto &ends = vocabulary.tables().endTokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

std::optional<uint32_t> Tokenizer::find(std::string_view text) const {
  if (const std::optional<uint32_t> token =
          specials.match(vocabulary, text, text.size()))
    if (vocabulary.bytes(*token).size() == text.size())
      return token;
  return vocabulary.find(text);
}

} // namespace sprig
