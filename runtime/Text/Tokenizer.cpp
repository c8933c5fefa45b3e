#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Letters.h"
#include "runtime/Text/Normalizer.h"
#include "runtime/Text/TokenStream.h"
#include "runtime/Text/TokenizerBuilder.h"
#include "runtime/Text/Utf8.h"

namespace sprig {
namespace {

// Positions are 32-bit in the merge loop; nobody's context holds a text near
// this.
constexpr size_t kMaxText = size_t(1) << 30;

} // namespace

struct Tokenizer::Scratch {
  MergeScratch merge;
  TextPieces pieces;
};

Tokenizer::Tokenizer(Vocabulary checked) : vocabulary(std::move(checked)) {
  switch (vocabulary.tables().kind) {
  case TokenizerKind::ByteBpe:
  case TokenizerKind::CharBpe:
    bytePair.emplace(vocabulary);
    break;
  case TokenizerKind::SentencePiece:
    sentencePiece.emplace();
    break;
  case TokenizerKind::Unigram:
    unigram.emplace(vocabulary);
    break;
  }
}

Result<Tokenizer> Tokenizer::create(const TokenizerData &data) {
  if (data.kind > TokenizerKind::CharBpe)
    return Status(StatusCode::Unsupported,
                  "tokenizer: expects BPE of bytes, characters or "
                  "SentencePiece's, or a unigram model, but got kind " +
                      std::to_string(int(data.kind)));
  Result<Vocabulary> vocabulary = Vocabulary::create(data);
  if (!vocabulary.ok())
    return vocabulary.status();
  Tokenizer out(std::move(*vocabulary));
  if (data.pre == kSentenceMapName) {
    Result<Pipeline> pipeline = Pipeline::create(data.pipeline);
    if (!pipeline.ok())
      return pipeline.status();
    if (data.kind != TokenizerKind::SentencePiece &&
        data.kind != TokenizerKind::Unigram)
      return Status(StatusCode::Corrupt,
                    "tokenizer: expects a map of characters for sentence "
                    "pieces alone");
    out.sentenceMap.emplace(std::move(*pipeline));
  } else if (data.pre == kPipelineName) {
    Result<Pipeline> pipeline = Pipeline::create(data.pipeline);
    if (!pipeline.ok())
      return pipeline.status();
    const bool bytes = data.kind == TokenizerKind::ByteBpe;
    if (bytes != pipeline->byteLevel())
      return Status(StatusCode::Corrupt,
                    std::string("tokenizer: expects ") + (bytes ? "a" : "no") +
                        " ByteLevel pre_tokenizer for this kind of model");
    out.pipeline.emplace(std::move(*pipeline));
  } else if (data.kind == TokenizerKind::ByteBpe) {
    Result<PreTokenizer> found = PreTokenizer::create(data.pre);
    if (!found.ok())
      return found.status();
    out.preTokenizer = std::move(*found);
  } else if (data.kind != TokenizerKind::SentencePiece &&
             data.kind != TokenizerKind::Unigram) {
    return Status(StatusCode::Corrupt,
                  "tokenizer: expects a pipeline for BPE of characters");
  }
  if (Status s = out.addSpecials(); !s)
    return s;
  return out;
}

Status Tokenizer::addSpecials() {
  const TokenizerData &data = vocabulary.tables();
  for (uint32_t token = 0; token < vocabulary.size(); ++token) {
    const TokenType type = vocabulary.type(token);
    const bool control = type == TokenType::Control;
    if (!control && type != TokenType::UserDefined)
      continue;
    std::string text(vocabulary.bytes(token));
    const uint8_t flags = data.addedFlags.empty() ? 0 : data.addedFlags[token];
    // Which text the template wrote is known before normalisation only, so
    // control tokens are always found there.
    const bool words = bytePair && !pipeline;
    if (control || words || !(flags & added::kNormalized)) {
      specials.add(token, std::move(text), control);
      continue;
    }
    if (!isValidUtf8(text))
      text = sanitizeUtf8(text);
    if (pipeline)
      if (Status s = pipeline->normalize(text); !s)
        return s;
    normalized.add(token, std::move(text), false);
  }
  specials.finish();
  normalized.finish();
  return {};
}

template <class Plain, class Special>
Status Tokenizer::cutSpecials(const SpecialTokens &tokens,
                              std::string_view text,
                              std::span<const Stretch> trusted, Plain &&plain,
                              Special &&special) const {
  const std::span<const uint8_t> flags = vocabulary.tables().addedFlags;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    while (!trusted.empty() && trusted.front().end <= at)
      trusted = trusted.subspan(1);
    const bool inside = !trusted.empty() && trusted.front().begin <= at;
    std::optional<SpecialTokens::Match> match;
    if (tokens.startsWith(text[at]))
      match =
          tokens.match(text.substr(at), inside ? trusted.front().end - at : 0);
    if (!match) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + match->length;
    const uint8_t how = flags.empty() ? 0 : flags[match->token];
    if ((how & added::kWord) && (endsWithWord(text.substr(0, begin)) ||
                                 startsWithWord(text.substr(end)))) {
      at = end;
      continue;
    }
    if (how & added::kStripLeft)
      begin -= spacesAtEnd(text.substr(done, begin - done));
    if (how & added::kStripRight)
      end += spacesAtStart(text.substr(end));
    if (Status s = plain(done, begin); !s)
      return s;
    special(match->token);
    at = done = end;
  }
  return plain(done, text.size());
}

Status Tokenizer::encodeWords(std::string_view text, bool atStart,
                              Scratch &scratch,
                              std::vector<uint32_t> &out) const {
  if (text.empty())
    return {};
  TextPieces &pieces = scratch.pieces;
  if (pipeline) {
    if (Status s = pipeline->split(text, atStart, pieces); !s)
      return s;
  } else if (Status s = preTokenizer.split(text, pieces.list); !s) {
    return s;
  }
  const bool bytes = vocabulary.tables().kind == TokenizerKind::ByteBpe;
  std::string spaced;
  for (std::string_view word : pieces.list) {
    if (word.empty())
      continue;
    if (!bytes) // tables hold real spaces
      word = spaced = replaceSpaceMarks(word);
    if (unigram)
      unigram->encode(vocabulary, word, out);
    else
      bytePair->encode(vocabulary, word, scratch.merge, out);
  }
  return {};
}

Status Tokenizer::encodePipeline(std::string_view text, bool atStart,
                                 Scratch &scratch,
                                 std::vector<uint32_t> &out) const {
  std::string normal(text);
  if (Status s = pipeline->normalize(normal); !s)
    return s;
  if (normalized.empty())
    return encodeWords(normal, atStart, scratch, out);
  const std::string_view all = normal;
  return cutSpecials(
      normalized, all, {},
      [&](size_t begin, size_t end) {
        return encodeWords(all.substr(begin, end - begin),
                           atStart && begin == 0, scratch, out);
      },
      [&](uint32_t token) { out.push_back(token); });
}

Status Tokenizer::encodeSentence(std::string_view text, Scratch &scratch,
                                 std::vector<uint32_t> &out) const {
  std::string mapped;
  const auto map = [&](size_t begin, size_t end) -> Status {
    std::string part(text.substr(begin, end - begin));
    if (sentenceMap)
      if (Status s = sentenceMap->normalize(part); !s)
        return s;
    mapped += part;
    return {};
  };
  // A token of the model itself is not mapped, and stays a part of its
  // sentence: only a special token begins a new one.
  if (Status s = cutSpecials(
          normalized, text, {}, map,
          [&](uint32_t token) { mapped += vocabulary.bytes(token); });
      !s)
    return s;
  const std::string spaced = prepareSentence(vocabulary.tables(), mapped);
  return cutSpecials(
      normalized, spaced, {},
      [&](size_t begin, size_t end) -> Status {
        const std::string_view part =
            std::string_view(spaced).substr(begin, end - begin);
        if (unigram)
          unigram->encode(vocabulary, part, out);
        else
          sentencePiece->encode(vocabulary, part, scratch.merge, out);
        return {};
      },
      [&](uint32_t token) { out.push_back(token); });
}

Status Tokenizer::encodePlain(std::string_view text, bool atStart,
                              Scratch &scratch,
                              std::vector<uint32_t> &out) const {
  if (text.empty())
    return {};
  std::string cleaned;
  if (!isValidUtf8(text))
    text = cleaned = sanitizeUtf8(text);
  if (pipeline)
    return encodePipeline(text, atStart, scratch, out);
  if (!bytePair)
    return encodeSentence(text, scratch, out);
  if (preTokenizer.nfc())
    text = cleaned = toFormC(text);
  return encodeWords(text, atStart, scratch, out);
}

Status Tokenizer::encodeMarked(std::string_view text,
                               std::span<const Stretch> trusted,
                               std::vector<uint32_t> &out) const {
  if (text.size() > kMaxText)
    return {StatusCode::InvalidArgument,
            "tokenizer: expects at most " + std::to_string(kMaxText) +
                " bytes of text, but got " + std::to_string(text.size())};
  Scratch scratch;
  return cutSpecials(
      specials, text, trusted,
      [&](size_t begin, size_t end) {
        return encodePlain(text.substr(begin, end - begin), begin == 0, scratch,
                           out);
      },
      [&](uint32_t token) { out.push_back(token); });
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
  for (const SpecialTokens *tokens : {&specials, &normalized})
    if (const auto match = tokens->match(text, text.size()))
      if (match->length == text.size())
        return match->token;
  return vocabulary.find(text);
}

} // namespace sprig
