//===- Unigram.h - the most likely pieces, with byte fallback ------------===//
#pragma once

#include "runtime/Text/Vocabulary.h"

#include <array>

namespace sprig {

/// Kudo 2018: of all ways to write a text as tokens, the one whose scores (log
/// probabilities) add up to most. A character that is no token costs 10 more
/// than the least likely one; runs of them become bytes or one unknown token.
class Unigram {
public:
  explicit Unigram(const Vocabulary &vocabulary);

  /// Appends the tokens of `text`, which must be valid UTF-8.
  void encode(const Vocabulary &vocabulary, std::string_view text,
              std::vector<uint32_t> &out) const;

private:
  void emitUnknown(const Vocabulary &vocabulary, std::string_view text,
                   std::vector<uint32_t> &out) const;

  std::vector<uint32_t> sorted; // by bytes
  double unknownScore = 0.0;
};

} // namespace sprig
