//===- CharsMap.h - SentencePiece's compiled character map ---------------===//
//
// `precompiled_charsmap`: characters, or several in a row, and what they become.
// Bytes: the length of a trie (32 bits, little endian), the trie, and texts that
// end in a zero byte each. The trie is a double array (darts-clone): words of 32
// bits, a node being a place among them. It comes with a model, from anyone: no
// place in it is trusted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sprig {

class CharsMap {
public:
  /// Corrupt where the bytes are no such map.
  static Result<CharsMap> create(std::string_view bytes);

  struct Match {
    size_t length = 0; // of the text that is replaced
    std::string_view becomes;
  };
  /// What the map has for the beginning of `text`: the shortest key, or the
  /// longest.
  std::optional<Match> match(std::string_view text, bool longest) const;

private:
  std::vector<uint32_t> units;
  std::string texts;
};

/// The bytes of standard Base64; none where `text` is something else.
std::optional<std::string> decodeBase64(std::string_view text);

} // namespace sprig
