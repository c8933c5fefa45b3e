//===- TokenizerData.h - the tables of a tokenizer, as plain data --------===//
//
// What a package (table Tokenizer of runtime/Format/Package.fbs) or an importer
// knows of a vocabulary. A TokenizerData is a set of views: of a mapped
// package, or of a TokenizerTables that an importer filled. Nothing here is
// trusted: Tokenizer::create checks every index.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sprig {

/// The same numbers as sprig.format.TokenizerKind.
enum class TokenizerKind : uint8_t {
  ByteBpe = 0,
  SentencePiece = 1,
  Unigram = 2,
  CharBpe = 3 // merges by rank as ByteBpe has them, of characters
};

/// How an added token is found in text, as `tokenizers` have it.
namespace added {
inline constexpr uint8_t kStripLeft = 1;  // takes white space before it
inline constexpr uint8_t kStripRight = 2; // and behind it
inline constexpr uint8_t kWord = 4;       // not inside a word
inline constexpr uint8_t kNormalized = 8; // in normalised text
} // namespace added

/// TokenizerData::pre of a tokenizer whose `pipeline` says how words are cut.
inline constexpr std::string_view kPipelineName = "tokenizer.json";
/// The same of sentence pieces whose characters its normaliser maps first.
inline constexpr std::string_view kSentenceMapName = "charsmap";

/// GGUF's numbers.
enum class TokenType : uint8_t {
  Normal = 1,
  Unknown = 2,
  Control =
      3, // never made from text, unless the caller asks for special tokens
  UserDefined = 4, // always matched in text, before everything else
  Unused = 5,      // padding of the vocabulary: never made, never sampled
  Byte = 6,        // SentencePiece's <0x00> … <0xFF>
};

struct TokenizerData {
  TokenizerKind kind = TokenizerKind::ByteBpe;
  std::string_view pre; // name of the pre-tokenizer (byte-level BPE only), see
                        // PreTokenizer.h
  std::string_view pipeline; // where `pre` is one of these: see Pipeline.h

  /// The bytes that token i stands for are tokenBytes[tokenOffsets[i] …
  /// tokenOffsets[i + 1]): real bytes, with neither GPT-2's alphabet nor
  /// SentencePiece's U+2581 in them. Control and user-defined tokens hold the
  /// text that is matched.
  std::span<const uint8_t> tokenBytes;
  std::span<const uint32_t> tokenOffsets; // vocabulary + 1
  std::span<const uint8_t> tokenTypes;    // vocabulary
  std::span<const float>
      scores; // vocabulary (SentencePiece, unigram), or empty
  std::span<const uint8_t> addedFlags; // vocabulary, or empty: bits of added
  std::span<const uint32_t> mergeLeft; // byte-level BPE, best merge first
  std::span<const uint32_t> mergeRight;

  int32_t bos = -1, unknown = -1, padding = -1; // -1: none
  std::span<const uint32_t> endTokens;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix = false; // text starts with a space, which decoding drops
  bool removeExtraWhitespace =
      false; // SentencePiece: runs of spaces become one
  bool ignoreMerges =
      false; // byte-level BPE: a whole word that is a token is taken at once
  bool byteFallback = false; // CharBpe, unigram: what is no token becomes bytes
  bool fuseUnknown = false; // CharBpe: a run of unknown characters is one token

  /// In place of mergeLeft and mergeRight, where every token that is not a byte
  /// is made by a merge and they come in the same order: merge i makes token
  /// mergeFirst + i, of a left one of mergeSplits[i] bytes and a right one.
  uint32_t mergeFirst = 0;
  std::span<const uint16_t> mergeSplits;
};

/// The same, owned. `data()` is valid while the tables live and are not
/// changed.
struct TokenizerTables {
  TokenizerKind kind = TokenizerKind::ByteBpe;
  std::string pre, pipeline;
  std::vector<uint8_t> tokenBytes;
  std::vector<uint32_t> tokenOffsets{0};
  std::vector<uint8_t> tokenTypes;
  std::vector<float> scores;
  std::vector<uint8_t> addedFlags;
  std::vector<uint32_t> mergeLeft, mergeRight;
  int32_t bos = -1, unknown = -1, padding = -1;
  std::vector<uint32_t> endTokens;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix = false;
  bool removeExtraWhitespace = false;
  bool ignoreMerges = false;
  bool byteFallback = false;
  bool fuseUnknown = false;

  TokenizerData data() const {
    return {kind,
            pre,
            pipeline,
            tokenBytes,
            tokenOffsets,
            tokenTypes,
            scores,
            addedFlags,
            mergeLeft,
            mergeRight,
            bos,
            unknown,
            padding,
            endTokens,
            addBos,
            addEos,
            addSpacePrefix,
            removeExtraWhitespace,
            ignoreMerges,
            byteFallback,
            fuseUnknown,
            /*mergeFirst=*/0,
            /*mergeSplits=*/{}};
  }
};

} // namespace sprig
