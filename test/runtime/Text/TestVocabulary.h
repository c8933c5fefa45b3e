// Small vocabularies written by hand, for tests.
#pragma once

#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/TokenizerBuilder.h"

#include <gtest/gtest.h>

namespace sprig::test {

/// A tokenizer and the tables that it looks into.
struct Made {
  std::unique_ptr<TokenizerTables> tables;
  std::unique_ptr<Tokenizer> tokenizer;
  const Tokenizer *operator->() const { return tokenizer.get(); }

  std::vector<uint32_t> encode(std::string_view text,
                               bool special = false) const {
    auto tokens = tokenizer->encode(text, special);
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    return tokens.ok() ? *tokens : std::vector<uint32_t>();
  }
  /// The tokens' bytes with bars between, which reads better than ids.
  std::string pieces(std::string_view text, bool special = false) const {
    std::string out;
    for (const uint32_t token : encode(text, special))
      out += (out.empty() ? "" : "|") + std::string(tokenizer->bytes(token));
    return out;
  }
};

inline Made make(TokenizerBuilder builder) {
  Made out{std::make_unique<TokenizerTables>(std::move(builder.tables)),
           nullptr};
  auto made = Tokenizer::create(out.tables->data());
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (made.ok())
    out.tokenizer = std::make_unique<Tokenizer>(std::move(*made));
  return out;
}

/// GPT-2's alphabet, byte 0 first. The views that it hands out live for ever.
inline std::string_view letter(unsigned byte) {
  static const std::vector<std::string> letters = [] {
    std::vector<std::string> out(256);
    for (uint32_t code = 0; code < 0x144; ++code) {
      std::string text;
      text += code < 0x80 ? std::string(1, char(code))
                          : std::string{char(0xC0 | code >> 6),
                                        char(0x80 | (code & 0x3F))};
      const std::string byte = decodeByteLevel(text);
      if (byte.size() == 1 && (code >= 0x80 || (code > 0x20 && code < 0x7F)))
        out[static_cast<uint8_t>(byte[0])] = text;
    }
    return out;
  }();
  return letters[byte];
}

/// All 256 bytes (token i is byte i), then `normal` tokens, then `control`
/// ones.
inline TokenizerBuilder
byteBuilder(std::initializer_list<std::string_view> normal = {},
            std::initializer_list<std::string_view> merges = {},
            std::initializer_list<std::string_view> control = {}) {
  TokenizerBuilder builder(TokenizerKind::ByteBpe);
  builder.tables.pre = "gpt-2";
  for (unsigned byte = 0; byte < 256; ++byte)
    builder.addToken(letter(byte), TokenType::Normal);
  for (const std::string_view text : normal)
    builder.addToken(text, TokenType::Normal);
  for (const std::string_view text : control)
    builder.addToken(text, TokenType::Control);
  for (const std::string_view merge : merges) {
    const Status status = builder.addMerge(merge);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return builder;
}

} // namespace sprig::test
