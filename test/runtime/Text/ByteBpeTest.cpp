#include "TestVocabulary.h"

using namespace sprig;
using namespace sprig::test;

TEST(ByteBpe, MergesInOrderOfTheListThenFromTheLeft) {
  const Made t = make(byteBuilder({"ab", "bc", "abc", "aa", "aaa"},
                                  {"b c", "a b", "a bc", "a a", "a aa"}));
  EXPECT_EQ(t.pieces("abc"),
            "abc"); // "bc" first, although "ab" is further left
  EXPECT_EQ(t.pieces("aba"), "ab|a");
  EXPECT_EQ(t.pieces("aaa"),
            "aa|a"); // the left pair first; (aa, a) is not in the list
  EXPECT_EQ(t.pieces("aaaa"), "aa|aa");
}

TEST(ByteBpe, OfEqualMergesTheFirstCounts) {
  const Made t = make(byteBuilder({"ab", "bc"}, {"a b", "b c", "a b"}));
  EXPECT_EQ(t.pieces("abc"), "ab|c");
}

TEST(ByteBpe, WordsDoNotMergeAcross) {
  const Made t =
      make(byteBuilder({"a\u0120", "\u0120a"}, {"a \u0120", "\u0120 a"}));
  EXPECT_EQ(t.pieces("a a"), "a| a");
}

TEST(ByteBpe, EveryByteRoundTrips) {
  const Made t = make(byteBuilder());
  const std::string text("\0\x7F\u00AD\u00FF\u0143\u20AC\U0001F600\n", 17);
  EXPECT_EQ(t->decode(t.encode(text)), text);
  for (unsigned byte = 0; byte < 256; ++byte)
    EXPECT_EQ(t->bytes(byte), std::string(1, char(byte)));
}

TEST(ByteBpe, InvalidUtf8ReadsAsReplacementCharacters) {
  const Made t = make(byteBuilder());
  EXPECT_EQ(t->decode(t.encode("a\xFF\xE2\x82")), "a\uFFFD\uFFFD");
}

TEST(ByteBpe, AByteWithoutATokenIsLeftOut) {
  TokenizerBuilder builder(TokenizerKind::ByteBpe);
  builder.tables.pre = "gpt-2";
  builder.addToken("<|end|>", TokenType::Control);
  builder.addToken("a", TokenType::Normal);
  builder.tables.unknown = 0; // a control token: never made from text
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("zaza"), (std::vector<uint32_t>{1, 1}));
}

TEST(ByteBpe, ControlTokensOnlyOnRequest) {
  const Made t = make(byteBuilder({}, {}, {"<|im_end|>", "<|im_end|>>"}));
  EXPECT_EQ(t.encode("<|im_end|>").size(), 10u);
  EXPECT_EQ(t.encode("<|im_end|>", true), std::vector<uint32_t>{256});
  EXPECT_EQ(t.encode("<|im_end|>>>", true),
            (std::vector<uint32_t>{257, '>'})); // the longest
  EXPECT_EQ(t.encode("<|im_end|", true).size(), 9u);
  EXPECT_EQ(t.pieces("a<|im_end|>b<|im_end|>", true),
            "a|<|im_end|>|b|<|im_end|>");
}

// Neither a merge nor the whole-word rule may lead from text to a control
// token.
TEST(ByteBpe, MergesNeverMakeControlTokens) {
  TokenizerBuilder builder = byteBuilder({"<|"}, {"< |", "<| >"}, {"<|>"});
  builder.tables.ignoreMerges = true;
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("<|>").size(), 2u);
  EXPECT_EQ(t.encode("<|>", true), std::vector<uint32_t>{257});
}

TEST(ByteBpe, UserDefinedTokensAlwaysMatch) {
  TokenizerBuilder builder = byteBuilder();
  builder.addToken("<tool>", TokenType::UserDefined);
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("a<tool>b"), (std::vector<uint32_t>{'a', 256, 'b'}));
}

TEST(ByteBpe, PaddingIsNeverMade) {
  TokenizerBuilder builder = byteBuilder();
  builder.addToken("zz", TokenType::Unused);
  builder.tables.ignoreMerges = true;
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("zz", true), (std::vector<uint32_t>{'z', 'z'}));
  EXPECT_FALSE(t->isUsable(256));
  EXPECT_FALSE(t->isUsable(100000));
  EXPECT_TRUE(t->isUsable('z'));
}

TEST(ByteBpe, SegmentsAreOneTextButTrustIsNotShared) {
  const Made t = make(byteBuilder({"ab"}, {"a b"}, {"<|x|>"}));
  const auto encode = [&](std::vector<TextSegment> segments) {
    auto tokens = t->encode(segments);
    EXPECT_TRUE(tokens.ok());
    return *tokens;
  };
  const std::vector<uint32_t> special{257}, merged{256};
  EXPECT_EQ(encode({{"a", true}, {"b", false}}), merged);
  EXPECT_EQ(encode({{"<|x|>", true}}), special);
  EXPECT_EQ(encode({{"<|", true}, {"x|>", true}}), special);
  EXPECT_EQ(encode({{"<|", true}, {"", false}, {"x|>", true}}), special);
  EXPECT_EQ(encode({{"<|x|>", false}}).size(), 5u);
  EXPECT_EQ(encode({{"<|", true}, {"x", false}, {"|>", true}}).size(), 5u);
  EXPECT_EQ(encode({{"<|x", true}, {"|>", false}}).size(), 5u);
  EXPECT_EQ(encode({{"<|", false}, {"x|>", true}}).size(), 5u);
}

TEST(ByteBpe, LongRunsOfOneCharacter) {
  TokenizerBuilder plain = byteBuilder(
      {"aa", "aaaa", "  "}, {"a a", "aa aa", "\u0120 \u0120"}, {"<<", "<a"});
  for (const char *pre : {"default", "gpt-2", "llama3", "qwen2", "smollm"}) {
    TokenizerBuilder builder = plain;
    builder.tables.pre = pre;
    const Made t = make(std::move(builder));
    for (const std::string_view unit :
         {"a", " ", "\n", "!", "7", "<", "'", "\r", " \n", "\u00E9", "\u0301",
          "\u65E5"}) {
      std::string text;
      while (text.size() < 131072)
        text += unit;
      EXPECT_EQ(t->decode(t.encode(text, true), {.control = true}), text)
          << pre << " " << unit;
    }
  }
}

TEST(ByteBpe, PreTokenizersHaveNames) {
  EXPECT_EQ(findPreTokenizer("llama-bpe")->family, "llama3");
  EXPECT_TRUE(findPreTokenizer("llama-bpe")->ignoreMerges);
  EXPECT_EQ(findPreTokenizer("nonesuch"), nullptr);
  TokenizerBuilder builder = byteBuilder();
  builder.tables.pre = "nonesuch";
  const auto made = Tokenizer::create(builder.tables.data());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::Unsupported);
  EXPECT_NE(made.status().message().find("smollm"), std::string::npos);
  EXPECT_NE(made.status().message().find("'nonesuch'"), std::string::npos);
}
