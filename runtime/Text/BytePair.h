//===- BytePair.h - BPE by rank, of bytes or characters ------------------===//
#pragma once

#include "runtime/Text/Merger.h"
#include "runtime/Text/Vocabulary.h"

#include <array>

namespace sprig {

/// Sennrich et al. 2016 over bytes (Radford et al. 2019): a word begins as its
/// bytes, and the adjacent pair whose merge comes first in the list is joined,
/// until no pair is in the list. With TokenizerKind::CharBpe it begins as its
/// characters; one that is no token becomes bytes (byteFallback) or unknown.
class BytePair {
public:
  explicit BytePair(const Vocabulary &vocabulary);

  /// Appends the tokens of `word`. A byte that no token stands for is left out.
  void encode(const Vocabulary &vocabulary, std::string_view word,
              MergeScratch &scratch, std::vector<uint32_t> &out) const;

private:
  void addLetters(const Vocabulary &vocabulary, std::string_view word,
                  std::vector<Symbol> &symbols) const;
  static uint64_t hash(uint32_t left, uint32_t right);

  std::array<uint32_t, 256> byteTokens;
  std::vector<uint32_t> slots;  // open addressing: merge + 1, 0 is free
  std::vector<uint32_t> merged; // the token that a merge makes
};

} // namespace sprig
