#include "runtime/Text/TokenStream.h"
#include "TestVocabulary.h"

using namespace sprig;
using namespace sprig::test;

TEST(TokenStream, HoldsBackPartsOfACharacter) {
  const Made t = make(byteBuilder());
  TokenStream stream(*t.tokenizer);
  std::string seen;
  for (const char c : std::string_view("a\U0001F600\u20ACz")) {
    const std::string part = stream.push(static_cast<uint8_t>(c));
    EXPECT_TRUE(part.empty() || part == "a" || part == "\U0001F600" ||
                part == "\u20AC" || part == "z");
    seen += part;
  }
  EXPECT_EQ(seen + stream.finish(), "a\U0001F600\u20ACz");
}

TEST(TokenStream, ATokenMayEndOneCharacterAndBeginAnother) {
  TokenizerBuilder builder = byteBuilder();
  const std::string text =
      std::string(letter(0xAC)) + std::string(letter(0xE2));
  builder.addToken(text, TokenType::Normal);
  const Made t = make(std::move(builder));
  TokenStream stream(*t.tokenizer);
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.push(256), "\u20AC");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TokenStream, InvalidBytes) {
  const Made t = make(byteBuilder());
  TokenStream stream(*t.tokenizer);
  EXPECT_EQ(stream.push(0xFF), "\uFFFD");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('a'), "\uFFFD"
                              "a");
}

TEST(TokenStream, ControlTokensAndStrangeIds) {
  const Made t = make(byteBuilder({}, {}, {"<|end|>"}));
  TokenStream quiet(*t.tokenizer);
  EXPECT_EQ(quiet.push(0xE2), "");
  EXPECT_EQ(quiet.push(256), "");
  EXPECT_EQ(quiet.push(4000000000u), "");
  EXPECT_EQ(quiet.finish(), "\uFFFD");
  EXPECT_EQ(t->decode(std::vector<uint32_t>{'a', 256, 999}), "a");
  EXPECT_EQ(t->decode(std::vector<uint32_t>{'a', 256, 999}, {.control = true}),
            "a<|end|>");
}

// Any bytes at all: the parts are whole characters, and joined they are what
// `decode` returns.
TEST(TokenStream, RandomBytes) {
  const Made t = make(byteBuilder());
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint32_t> tokens;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      const uint32_t pick = state >> 24;
      tokens.push_back(i % 3 ? pick | 0x80
                             : pick); // many lead and continuation bytes
    }
    TokenStream stream(*t.tokenizer);
    std::string joined;
    for (const uint32_t token : tokens)
      joined += stream.push(token);
    joined += stream.finish();
    ASSERT_EQ(joined, t->decode(tokens));
  }
}
