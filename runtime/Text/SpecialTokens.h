//===- SpecialTokens.h - control and user-defined tokens in text ---------===//
#pragma once

#include "runtime/Text/Vocabulary.h"

#include <bitset>

namespace sprig {

/// Finds the longest control or user-defined token at a place of a text. Time
/// is linear in the token's length, however many tokens there are (a run of "<"
/// meets thousands of them).
class SpecialTokens {
public:
  explicit SpecialTokens(const Vocabulary &vocabulary);

  /// May any of them begin with this byte?
  bool startsWith(char byte) const { return first[static_cast<uint8_t>(byte)]; }

  /// The longest user-defined token that `text` starts with, or control token
  /// of at most `controlBytes` bytes (0: control tokens are not wanted).
  std::optional<uint32_t> match(const Vocabulary &vocabulary,
                                std::string_view text,
                                size_t controlBytes) const;

private:
  std::vector<uint32_t> sorted; // by bytes, then by id
  std::bitset<256> first;
};

} // namespace sprig
