#include "TestVocabulary.h"

using namespace sprig;
using namespace sprig::test;

namespace {

/// "<unk>", "<s>", "</s>", 256 bytes, then pieces with falling scores.
TokenizerBuilder pieceBuilder(std::initializer_list<std::string_view> pieces) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char *digits = "0123456789ABCDEF";
      out.push_back(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] +
                    ">");
    }
    return out;
  }();
  TokenizerBuilder builder(TokenizerKind::SentencePiece);
  builder.addToken("<unk>", TokenType::Unknown, 0.f);
  builder.addToken("<s>", TokenType::Control, 0.f);
  builder.addToken("</s>", TokenType::Control, 0.f);
  for (const std::string &name : names)
    builder.addToken(name, TokenType::Byte, 0.f);
  float score = 0;
  for (const std::string_view piece : pieces)
    builder.addToken(piece, TokenType::Normal, --score);
  builder.tables.unknown = 0;
  return builder;
}

const std::initializer_list<std::string_view> kPieces = {
    "bc", "ab", "abc", "\u2581a", "a", "b", "c", "\u2581", "\u00E9"};

} // namespace

TEST(SentencePiece, TheBestScoreMergesFirst) {
  const Made t = make(pieceBuilder(kPieces));
  EXPECT_EQ(t.pieces("abc"), "abc"); // through "bc"
  EXPECT_EQ(t.pieces("abb"), "ab|b");
  EXPECT_EQ(t.pieces("c abc"), "c| |abc");
  EXPECT_EQ(t.pieces("c aa"), "c| a|a");
}

TEST(SentencePiece, SpacesAndTheirMarkAreOne) {
  const Made t = make(pieceBuilder(kPieces));
  EXPECT_EQ(t.encode("\u2581a"), t.encode(" a"));
  EXPECT_EQ(t->decode(t.encode(" a")), " a");
}

TEST(SentencePiece, OtherCharactersBecomeBytes) {
  const Made t = make(pieceBuilder(kPieces));
  EXPECT_EQ(t.encode("\u20AC"),
            (std::vector<uint32_t>{3 + 0xE2, 3 + 0x82, 3 + 0xAC}));
  EXPECT_EQ(t->decode(t.encode("a\u20AC\u00E9\n")), "a\u20AC\u00E9\n");
  EXPECT_EQ(t->decode(t.encode("a\xFF")), "a\uFFFD");
}

TEST(SentencePiece, NamesOfBytesAndControlTokensStayText) {
  const Made t =
      make(pieceBuilder({"<", "0", "x", "4", "1", ">", "s", "<s", "<s>"}));
  EXPECT_EQ(t.pieces("<0x41>"), "<|0|x|4|1|>");
  // A normal token spelled like a control token is still a normal one.
  EXPECT_EQ(t.encode("<s>").back(), 3u + 256 + 8);
  EXPECT_EQ(t.encode("<s>", true), std::vector<uint32_t>{1});
}

TEST(SentencePiece, UnknownCharactersWithoutByteTokens) {
  TokenizerBuilder builder(TokenizerKind::SentencePiece);
  builder.addToken("<unk>", TokenType::Unknown, 0.f);
  builder.addToken("a", TokenType::Normal, 0.f);
  builder.tables.unknown = 0;
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("xya\u20AC"),
            (std::vector<uint32_t>{0, 1, 0})); // runs are one
}

TEST(SentencePiece, SpacePrefixFollowsSpecialTokens) {
  TokenizerBuilder builder = pieceBuilder(kPieces);
  builder.tables.addSpacePrefix = true;
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.pieces("a"), " a");
  EXPECT_EQ(t.pieces("<s>a</s>b", true), "<s>| a|</s>| |b");
  EXPECT_EQ(t.pieces(""), "");
  EXPECT_EQ(t.pieces("<s>", true), "<s>");
  EXPECT_EQ(t->decode(t.encode("a b")), "a b");
  EXPECT_EQ(t->decode(t.encode("a"), {.start = false}),
            " a"); // in the middle of a text
  // Text of two parts is one text: no space between them.
  const std::vector<TextSegment> parts = {{"b", true}, {"c", false}};
  EXPECT_EQ(*t->encode(parts), t.encode("bc"));
}

TEST(SentencePiece, ExtraWhitespace) {
  TokenizerBuilder builder = pieceBuilder(kPieces);
  builder.tables.removeExtraWhitespace = true;
  const Made t = make(std::move(builder));
  EXPECT_EQ(t->decode(t.encode("  a   b  ")), "a b");
}

TEST(SentencePiece, UserDefinedRunsMatchTheLongest) {
  TokenizerBuilder builder = pieceBuilder(kPieces);
  for (const std::string_view text : {"\n", "\n\n", "\n\n\n\n"})
    builder.addToken(text, TokenType::UserDefined, 0.f);
  const Made t = make(std::move(builder));
  const uint32_t first = 3 + 256 + 9;
  EXPECT_EQ(t.encode("\n\n\n\n\n\n\n"),
            (std::vector<uint32_t>{first + 2, first + 1, first}));
}

TEST(SentencePiece, LongRunsOfOneCharacter) {
  const Made t = make(pieceBuilder({"a", "aa", "aaaa", " "}));
  for (const std::string_view unit : {"a", " ", "<", "\u20AC"}) {
    std::string text;
    while (text.size() < 131072)
      text += unit;
    EXPECT_EQ(t->decode(t.encode(text, true)), text) << unit;
  }
}
