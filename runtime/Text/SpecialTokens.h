//===- SpecialTokens.h - control and user-defined tokens in text ---------===//
#pragma once

#include "runtime/Text/Vocabulary.h"

#include <bitset>
#include <deque>

namespace sprig {

/// Finds the longest control or user-defined token at a place of a text. Time
/// is linear in the token's length, however many tokens there are (a run of "<"
/// meets thousands of them).
class SpecialTokens {
public:
  struct Match {
    uint32_t token;
    size_t length;
  };

  /// Adds a token that is found as `text`, which is copied. Call `finish` after
  /// the last.
  void add(uint32_t token, std::string text, bool control);
  void finish();

  bool empty() const { return sorted.empty(); }
  /// May any of them begin with this byte?
  bool startsWith(char byte) const { return first[static_cast<uint8_t>(byte)]; }

  /// The longest user-defined token that `text` starts with, or control token
  /// of at most `controlBytes` bytes (0: control tokens are not wanted).
  std::optional<Match> match(std::string_view text, size_t controlBytes) const;

private:
  struct Entry {
    std::string_view text;
    uint32_t token;
    bool control;
  };
  std::deque<std::string> texts; // which moving does not move
  std::vector<Entry> sorted;     // by bytes, then by id
  std::bitset<256> first;
};

} // namespace sprig
