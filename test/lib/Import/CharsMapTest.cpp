// SentencePiece's maps of characters against the packages that read them, see generate_charsmap_cases.py; and maps
// that are none.
#include "runtime/Text/CharsMap.h"
#include "lib/Import/TokenizerJson.h"
#include "runtime/Text/Pipeline.h"
#include "runtime/Text/Tokenizer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using nlohmann::json;
using sprig::CharsMap;

namespace {

const json &cases() {
  static const json read = [] {
    const char *other = std::getenv("SPRIG_CHARSMAP_CASES");
    return json::parse(std::ifstream(other ? other : SPRIG_SOURCE_DIR "/test/lib/Import/charsmap_cases.json"));
  }();
  return read;
}

std::string bytesOf(const json &base64) {
  const auto bytes = sprig::decodeBase64(base64.get<std::string>());
  EXPECT_TRUE(bytes.has_value());
  return bytes.value_or("");
}

std::string word(uint32_t value) {
  return {char(value), char(value >> 8), char(value >> 16), char(value >> 24)};
}

/// A map of a trie and texts.
std::string mapOf(const std::vector<uint32_t> &units, const std::string &texts) {
  std::string bytes = word(uint32_t(units.size() * 4));
  for (const uint32_t unit : units)
    bytes += word(unit);
  return bytes + texts;
}

/// One key, 'a' (0x61): the root's children begin at 0x100, the key's at 0x200, where its value lies.
std::vector<uint32_t> oneKey(uint32_t value) {
  std::vector<uint32_t> units(0x300);
  units[0] = 0x100 << 10;
  units[0x161] = 0x61 | 1 << 8 | (0x161 ^ 0x200) << 10;
  units[0x200] = value | 1u << 31;
  return units;
}

void expectRefusal(const std::string &bytes, const std::string &message) {
  const auto map = CharsMap::create(bytes);
  ASSERT_FALSE(map.ok()) << message;
  EXPECT_EQ(map.status().message(), "tokenizer: precompiled_charsmap " + message);
}

TEST(CharsMap, MatchesTheTokenizersPackage) {
  const json step = {{"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", cases()["charsmap"]}}}};
  const auto pipeline = sprig::Pipeline::create(step.dump());
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  for (size_t i = 0; i < cases()["texts"].size(); ++i) {
    auto text = cases()["texts"][i].get<std::string>();
    ASSERT_TRUE(pipeline->normalize(text).ok());
    EXPECT_EQ(text, cases()["normal"][i].get<std::string>()) << cases()["texts"][i].dump(-1, ' ', true);
  }
}

TEST(CharsMap, MatchesSentencePiece) {
  for (const json &one : cases()["models"]) {
    const std::string model = bytesOf(one["model"]);
    auto tables = mlir::llm::readSentencePieceModel(model, "tokenizer.model");
    ASSERT_TRUE(bool(tables)) << llvm::toString(tables.takeError());
    const auto tokenizer = sprig::Tokenizer::create(tables->data());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (size_t i = 0; i < cases()["texts"].size(); ++i) {
      const auto ids = tokenizer->encode(cases()["texts"][i].get<std::string>());
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*ids, one["ids"][i].get<std::vector<uint32_t>>()) << cases()["texts"][i].dump(-1, ' ', true);
    }
  }
}

TEST(CharsMap, MapsThatAreNone) {
  expectRefusal("abc", "expects a trie and texts, but got 3 bytes");
  expectRefusal(word(0), "expects a trie of whole words within its 0 bytes, but got one of 0");
  expectRefusal(word(6) + "123456", "expects a trie of whole words within its 6 bytes, but got one of 6");
  expectRefusal(word(8) + "1234", "expects a trie of whole words within its 4 bytes, but got one of 8");
  expectRefusal(mapOf({0}, "\xff"), "expects texts of UTF-8, but got other bytes");
  expectRefusal(mapOf({0}, std::string(257, 'a')), "expects texts of at most 256 bytes, but got 257");
  for (const char *text : {"a", "ab=", "a===", "ab\n=", "====a"})
    EXPECT_FALSE(sprig::decodeBase64(text)) << text;
  EXPECT_EQ(sprig::decodeBase64("aGk="), "hi");
}

/// Places in a map are checked as they are used: a trie of 2^22 units is not walked for a key that nobody writes.
TEST(CharsMap, PlacesOutOfReach) {
  const std::string texts("x\0\xc3\xa9\0", 5);
  const auto becomes = [&](const std::vector<uint32_t> &units) -> std::optional<std::string> {
    const auto map = CharsMap::create(mapOf(units, texts));
    EXPECT_TRUE(map.ok());
    const auto match = map->match("ab", /*longest=*/true);
    return match ? std::optional(std::string(match->becomes)) : std::nullopt;
  };
  EXPECT_EQ(becomes(oneKey(0)), "x");
  EXPECT_EQ(becomes(oneKey(2)), "\xc3\xa9");
  EXPECT_EQ(becomes(oneKey(5)), ""); // behind the last text
  EXPECT_EQ(becomes(oneKey(3)), std::nullopt); // within a character
  EXPECT_EQ(becomes(oneKey(6)), std::nullopt);
  EXPECT_EQ(becomes(oneKey(0x7fffffff)), std::nullopt);
  std::vector<uint32_t> units = oneKey(0);
  units[0] = 0x3fffff << 10 | 0x200; // children past the end
  EXPECT_EQ(becomes(units), std::nullopt);
  units = oneKey(0);
  units[0x161] = 0x61 | 1 << 8 | 0x3ffffeu << 10; // a value past the end
  EXPECT_EQ(becomes(units), std::nullopt);
  // A node that is its own child: as long as the bound on keys, no longer.
  units.assign(0x100, 0);
  units[0x61] = 0x61 | 1 << 8;
  const auto map = CharsMap::create(mapOf(units, texts));
  ASSERT_TRUE(map.ok());
  EXPECT_LE(map->match(std::string(1000, 'a'), true).value_or(CharsMap::Match()).length, 64u);
}

} // namespace
