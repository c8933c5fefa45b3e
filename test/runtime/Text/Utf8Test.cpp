#include "runtime/Text/Utf8.h"
#include "runtime/Text/Normalizer.h"

#include <gtest/gtest.h>

using namespace sprig;

TEST(Utf8, EveryCharacterRoundTrips) {
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 97) {
    if (code >= 0xD800 && code <= 0xDFFF)
      continue;
    std::string text;
    appendUtf8(text, code);
    const Utf8Char c = decodeUtf8(text);
    ASSERT_TRUE(c.valid) << code;
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Char part = decodeUtf8(std::string_view(text).substr(0, cut));
      ASSERT_TRUE(!part.valid && part.truncated) << code;
    }
  }
}

TEST(Utf8, NoCharacters) {
  std::string text;
  appendUtf8(text, 0xD800);
  appendUtf8(text, 0x110000);
  EXPECT_EQ(text, "\uFFFD\uFFFD");
  EXPECT_EQ(decodeUtf8("").length, 0u);
}

// As many U+FFFD as Python's bytes.decode(errors="replace") makes.
TEST(Utf8, InvalidBytesBecomeReplacementCharacters) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\x80", "\uFFFD"},
      {"a\xFFz", "a\uFFFDz"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                     // overlong
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},           // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},           // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, // above U+10FFFF
      {"\xE2\x82", "\uFFFD"},                           // cut short
      {"\xE2\x82z", "\uFFFDz"},
      {"\xF0\x9F\x98\xE2\x82\xAC", "\uFFFD\u20AC"},
      {"\xF5\x80", "\uFFFD\uFFFD"},
  };
  for (const auto &[bytes, want] : cases) {
    EXPECT_EQ(sanitizeUtf8(bytes), want);
    EXPECT_FALSE(isValidUtf8(bytes));
  }
  EXPECT_TRUE(isValidUtf8("plain \u00E9 \u20AC \U0001F600"));
}

TEST(Normalizer, FormC) {
  EXPECT_EQ(toFormC("plain"), "plain");
  EXPECT_EQ(toFormC("e\u0301"), "\u00E9");
  EXPECT_EQ(toFormC("s\u0307\u0323"), "\u1E69"); // marks are put in order first
  EXPECT_EQ(toFormC("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(toFormC("\u212B"), "\u00C5");
  EXPECT_EQ(toFormC("\u0301x"), "\u0301x");
}

TEST(Normalizer, ManyMarksInTheWrongOrder) {
  std::string text = "a", want = "a";
  for (int i = 0; i < 40000;
       ++i) { // classes 230, 220, 202: a quadratic sort would take minutes
    text += "\u0304\u0323\u0327";
  }
  const std::string out = toFormC(text);
  EXPECT_GT(out.size(), 200000u);
  EXPECT_EQ(toFormC(out), out);
}
