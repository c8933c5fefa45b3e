//===- Vocabulary.h - checked tokens, found by id or by bytes ------------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Text/TokenizerData.h"

#include <array>
#include <optional>

namespace sprig {

/// The tokens of a TokenizerData, whose views must outlive it.
class Vocabulary {
public:
  /// Checks every table and builds the index. Corrupt names the table and the
  /// entry.
  static Result<Vocabulary> create(const TokenizerData &data);
  Vocabulary(Vocabulary &&) = default; // what the tables view moves along

  uint32_t size() const {
    return static_cast<uint32_t>(data.tokenTypes.size());
  }
  /// With merges as pairs, whatever they were given as.
  const TokenizerData &tables() const { return data; }

  /// The bytes of `token`; empty where there is no such token.
  std::string_view bytes(uint32_t token) const {
    if (token >= size())
      return {};
    return {reinterpret_cast<const char *>(data.tokenBytes.data()) +
                data.tokenOffsets[token],
            data.tokenOffsets[token + 1] - data.tokenOffsets[token]};
  }

  /// Unused where there is no such token.
  TokenType type(uint32_t token) const {
    return token < size() ? TokenType(data.tokenTypes[token])
                          : TokenType::Unused;
  }

  /// The token that plain text `text` may become: a normal or user-defined one,
  /// never any other. Of equals, normal ones come first, then the smaller id.
  std::optional<uint32_t> find(std::string_view text) const;

  /// The token that stands for this byte of a character that is no token
  /// (TokenType::Byte).
  std::optional<uint32_t> byteToken(char byte) const {
    const uint32_t token = byteTokens[static_cast<uint8_t>(byte)];
    return token == UINT32_MAX ? std::nullopt : std::optional(token);
  }

  /// Bytes of the longest token that `find` can return.
  size_t longest() const { return longestText; }

private:
  explicit Vocabulary(const TokenizerData &data) : data(data) {}
  void index();
  Status pairMerges();

  TokenizerData data;
  std::vector<uint32_t> slots; // open addressing: token + 1, 0 is free
  std::vector<uint32_t> left, right; // of merges that were given as splits
  std::array<uint32_t, 256> byteTokens;
  size_t longestText = 0;
};

} // namespace sprig
