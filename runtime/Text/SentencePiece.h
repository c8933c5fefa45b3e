//===- SentencePiece.h - BPE by score with byte fallback -----------------===//
#pragma once

#include "runtime/Text/Merger.h"
#include "runtime/Text/Vocabulary.h"

#include <array>

namespace sprig {

/// SentencePiece's BPE (Kudo and Richardson 2018): text begins as its
/// characters, and the adjacent pair that makes the token of the highest score
/// is joined, until no pair makes a token. A character that is no token becomes
/// the tokens of its bytes, or else the unknown token.
class SentencePiece {
public:
  explicit SentencePiece(const Vocabulary &vocabulary);

  /// Appends the tokens of `text`, which must be valid UTF-8. `first`: the text
  /// begins the input or follows a special token, where the space in front
  /// belongs (if the vocabulary has it).
  void encode(const Vocabulary &vocabulary, std::string_view text, bool first,
              MergeScratch &scratch, std::vector<uint32_t> &out) const;

private:
  void emit(const Vocabulary &vocabulary, std::string_view text,
            const Symbol &symbol, std::vector<uint32_t> &out) const;

  std::array<uint32_t, 256> byteTokens;
};

} // namespace sprig
