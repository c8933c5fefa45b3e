//===- SentencePiece.h - BPE by score with byte fallback -----------------===//
#pragma once

#include "runtime/Text/Merger.h"
#include "runtime/Text/Vocabulary.h"

namespace sprig {

/// Spaces of `text` as the vocabulary wants them, one put in front where it
/// has that. Tables hold real spaces, so the mark in a text is one too.
std::string prepareSentence(const TokenizerData &data, std::string_view text);

/// SentencePiece's BPE (Kudo and Richardson 2018): text begins as its
/// characters, and the adjacent pair that makes the token of the highest score
/// is joined, until no pair makes a token. A character that is no token becomes
/// the tokens of its bytes, or else the unknown token.
class SentencePiece {
public:
  /// Appends the tokens of a prepared text, which must be valid UTF-8.
  void encode(const Vocabulary &vocabulary, std::string_view text,
              MergeScratch &scratch, std::vector<uint32_t> &out) const;

private:
  void emit(const Vocabulary &vocabulary, std::string_view text,
            const Symbol &symbol, std::vector<uint32_t> &out) const;
};

} // namespace sprig
