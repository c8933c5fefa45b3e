// Text made of tokens that stay is read as before; what they are merged from stays with them.
#include "lib/Import/PruneTokenizer.h"
#include "lib/Import/GGUFTokenizer.h"
#include "lib/Weights/GGUFFile.h"
#include "runtime/Text/Tokenizer.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace mlir::llm;
using sprig::TokenizerTables;
using sprig::TokenType;
using Ids = std::vector<uint32_t>;

namespace {

TokenizerTables makeTables(std::vector<std::string> tokens, std::vector<TokenType> types) {
  TokenizerTables tables;
  tables.pre = "gpt-2";
  for (const std::string &token : tokens) {
    tables.tokenBytes.insert(tables.tokenBytes.end(), token.begin(), token.end());
    tables.tokenOffsets.push_back(uint32_t(tables.tokenBytes.size()));
  }
  for (TokenType type : types)
    tables.tokenTypes.push_back(uint8_t(type));
  return tables;
}

TEST(PruneTokenizer, AncestorsBytesAndControlTokensStay) {
  const TokenType N = TokenType::Normal;
  TokenizerTables tables =
      makeTables({"a", "b", "ab", "abab", "ba", "aba", "<end>"}, {N, N, N, N, N, N, TokenType::Control});
  tables.mergeLeft = {0, 2, 1, 2}, tables.mergeRight = {1, 2, 0, 0}; // ab, abab, ba, aba
  tables.endTokens = {6};
  auto keep = closeVocabulary(tables, Ids{3});
  ASSERT_TRUE(bool(keep));
  EXPECT_EQ(*keep, (std::vector<int32_t>{0, 1, 2, 3, 6}));
  auto fewer = pruneTokenizer(tables, *keep);
  ASSERT_TRUE(bool(fewer));
  EXPECT_EQ(fewer->mergeLeft, (Ids{0, 2}));
  EXPECT_EQ(fewer->mergeRight, (Ids{1, 2}));
  EXPECT_EQ(fewer->endTokens, (Ids{4}));
  EXPECT_EQ(fewer->tokenOffsets.size(), 6u);
}

TEST(PruneTokenizer, SentencePieceKeepsEveryCut) {
  const TokenType N = TokenType::Normal;
  TokenizerTables tables = makeTables({"<unk>", "a", "b", "c", "ab", "bc", "abc", "ca"},
                                      {TokenType::Unknown, N, N, N, N, N, N, N});
  tables.kind = sprig::TokenizerKind::SentencePiece;
  tables.scores = {0, -1, -2, -3, -4, -5, -6, -7};
  tables.unknown = 0;
  auto keep = closeVocabulary(tables, Ids{6});
  ASSERT_TRUE(bool(keep));
  EXPECT_EQ(*keep, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  auto fewer = pruneTokenizer(tables, *keep);
  ASSERT_TRUE(bool(fewer));
  EXPECT_EQ(fewer->scores.size(), 7u);
}

TEST(PruneTokenizer, RefusesWhatIsNotThere) {
  TokenizerTables tables = makeTables({"a", "<end>"}, {TokenType::Normal, TokenType::Control});
  tables.endTokens = {1};
  auto outside = closeVocabulary(tables, Ids{2});
  EXPECT_EQ(::llvm::toString(outside.takeError()), "expects tokens below 2 to keep, but got 2");
  auto noEnd = pruneTokenizer(tables, {0});
  EXPECT_EQ(::llvm::toString(noEnd.takeError()), "expects the end token 1 among those to keep, but it is not");
}

/// The real vocabularies: a text is read as the same tokens under their new ids, and so is any other text made of them.
class RealTokenizer : public ::testing::TestWithParam<const char *> {};

TEST_P(RealTokenizer, ReadsTextAsBefore) {
  const std::string path = std::string(SPRIG_BINARY_DIR "/models/") + GetParam();
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there";
  auto file = GGUFFile::open(path);
  ASSERT_TRUE(bool(file));
  auto read = readGGUFTokenizer(**file);
  ASSERT_TRUE(bool(read) && *read);
  const TokenizerTables &tables = (*read)->tables;
  auto whole = sprig::Tokenizer::create(tables.data());
  ASSERT_TRUE(whole.ok());
  const std::string text = "The committee reconvened at 9:45; nobody's coat was dry, and \"unbelievable\" was the word "
                           "of the morning.\n\n\tfor (int i = 0; i < 10; ++i) total += values[i];\n\xc3\xa9t\xc3\xa9";
  auto ids = whole->encode(text);
  ASSERT_TRUE(ids.ok());
  auto keep = closeVocabulary(tables, Ids(ids->begin(), ids->end()));
  ASSERT_TRUE(bool(keep));
  EXPECT_LT(keep->size(), tables.tokenTypes.size() / 4);
  auto fewer = pruneTokenizer(tables, *keep);
  ASSERT_TRUE(bool(fewer));
  auto pruned = sprig::Tokenizer::create(fewer->data());
  ASSERT_TRUE(pruned.ok()) << pruned.status().message();
  auto again = pruned->encode(text);
  ASSERT_TRUE(again.ok());
  Ids old;
  for (uint32_t id : *again)
    old.push_back(uint32_t((*keep)[id]));
  EXPECT_EQ(old, *ids);
  // What has no token of its own any more is still read, byte by byte if it has to be.
  auto other = pruned->encode("xylophone");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(pruned->decode(*other), "xylophone");
}

INSTANTIATE_TEST_SUITE_P(All, RealTokenizer,
                         ::testing::Values("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"),
                         [](const auto &info) { return info.index ? "Gemma3" : "SmolLM2"; });

} // namespace
