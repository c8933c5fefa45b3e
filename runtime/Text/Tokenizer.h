//===- Tokenizer.h - text to tokens and back -----------------------------===//
//
//   Result<Tokenizer> tokenizer = Tokenizer::create(data);
//   if (!tokenizer.ok())
//     return tokenizer.status();
//   Result<std::vector<uint32_t>> tokens = tokenizer->encode("Hello world");
//   std::string text = tokenizer->decode(*tokens);
//
// A tokenizer is immutable: any number of threads may use one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Text/BytePair.h"
#include "runtime/Text/MarkedText.h"
#include "runtime/Text/Pipeline.h"
#include "runtime/Text/PreTokenizer.h"
#include "runtime/Text/SentencePiece.h"
#include "runtime/Text/SpecialTokens.h"
#include "runtime/Text/Unigram.h"

namespace sprig {

struct DecodeOptions {
  bool control =
      false; // write control tokens as their text; otherwise they are left out
  bool start = true; // the tokens begin the text: the space that `encode` put
                     // in front goes
};

class Tokenizer {
public:
  /// `data`'s views must outlive the tokenizer. Corrupt where a table
  /// contradicts itself, Unsupported where the kind or the pre-tokenizer is not
  /// known.
  static Result<Tokenizer> create(const TokenizerData &data);

  /// The tokens of `text`; no begin or end token is added. With `special`,
  /// control tokens spelled in the text are parsed (the longest that matches),
  /// else they stay text; user-defined tokens always match. Invalid UTF-8 reads
  /// as U+FFFD. A byte that the vocabulary has no token for is left out.
  Result<std::vector<uint32_t>> encode(std::string_view text,
                                       bool special = false) const;

  /// The same for text whose parts differ in trust. The parts are one text:
  /// words may span them, but a control token must lie in trusted text
  /// entirely.
  Result<std::vector<uint32_t>>
  encode(std::span<const TextSegment> segments) const;

  /// All bytes of `tokens`; invalid UTF-8 becomes U+FFFD. Ids outside the
  /// vocabulary are left out. To decode while tokens arrive, see TokenStream.h.
  std::string decode(std::span<const uint32_t> tokens,
                     DecodeOptions options = {}) const;

  /// The bytes of one token (possibly part of a character), control tokens
  /// included.
  std::string_view bytes(uint32_t token) const {
    return vocabulary.bytes(token);
  }

  uint32_t size() const { return vocabulary.size(); }
  TokenType type(uint32_t token) const { return vocabulary.type(token); }
  bool isControl(uint32_t token) const {
    return type(token) == TokenType::Control ||
           type(token) == TokenType::Unknown;
  }
  /// Does generation end here?
  bool isEnd(uint32_t token) const;
  /// May a sampler choose it? Not padding rows and ids past the vocabulary.
  bool isUsable(uint32_t token) const {
    return type(token) != TokenType::Unused;
  }
  const TokenizerData &data() const { return vocabulary.tables(); }

  /// The token whose bytes are `text`, control tokens included; nothing where
  /// there is none.
  std::optional<uint32_t> find(std::string_view text) const;

private:
  explicit Tokenizer(Vocabulary vocabulary);
  struct Scratch;
  struct Stretch {
    size_t begin, end;
  };
  Status addSpecials();
  /// A stretch of text without special tokens. `atStart`: it begins the input.
  Status encodePlain(std::string_view text, bool atStart, Scratch &scratch,
                     std::vector<uint32_t> &out) const;
  /// The same of sentence pieces.
  Status encodeSentence(std::string_view text, Scratch &scratch,
                        std::vector<uint32_t> &out) const;
  Status encodePipeline(std::string_view text, bool atStart, Scratch &scratch,
                        std::vector<uint32_t> &out) const;
  /// Words of normalised text.
  Status encodeWords(std::string_view text, bool atStart, Scratch &scratch,
                     std::vector<uint32_t> &out) const;
  Status encodeMarked(std::string_view text, std::span<const Stretch> trusted,
                      std::vector<uint32_t> &out) const;
  /// Calls `plain(begin, end)` and `special(token)` for the parts of `text`.
  template <class Plain, class Special>
  Status cutSpecials(const SpecialTokens &tokens, std::string_view text,
                     std::span<const Stretch> trusted, Plain &&plain,
                     Special &&special) const;

  Vocabulary vocabulary;
  SpecialTokens specials;    // found in text as it came
  SpecialTokens normalized;  // found in normalised text, or in a sentence
  PreTokenizer preTokenizer; // byte-level BPE without a pipeline only
  std::optional<Pipeline> pipeline;
  std::optional<Pipeline> sentenceMap; // what sentence pieces do first
  std::optional<BytePair> bytePair; // one of the three
  std::optional<SentencePiece> sentencePiece;
  std::optional<Unigram> unigram;
};

} // namespace sprig
