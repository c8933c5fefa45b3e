// tokenizer.json files against the `tokenizers` package, see
// generate_tokenizer_json_cases.py; and what such a file may not say.
#include "lib/Import/TokenizerJson.h"
#include "runtime/Text/Tokenizer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using nlohmann::json;
using Ids = std::vector<uint32_t>;

namespace {

const json &cases() {
  static const json read = [] {
    std::ifstream file(SPRIG_SOURCE_DIR
                       "/test/lib/Import/tokenizer_json_cases.json");
    return json::parse(file);
  }();
  return read;
}

/// The tokenizer.json of a case.
json fileOf(const json &one) {
  json file = cases()["vocabularies"][one["vocabulary"].get<std::string>()];
  for (const auto &[key, value] : one["changes"].items())
    (key == "normalizer" || key == "pre_tokenizer" || key == "decoder"
         ? file
         : file["model"])[key] = value;
  return file;
}

llvm::Expected<sprig::TokenizerTables> read(const json &file) {
  return readTokenizerJson(file.dump(), "tokenizer.json");
}

void expectRefusal(const json &file, const char *message) {
  llvm::Expected<sprig::TokenizerTables> tables = read(file);
  ASSERT_FALSE(bool(tables)) << message;
  EXPECT_EQ(llvm::toString(tables.takeError()), message);
}

Ids encode(const sprig::Tokenizer &tokenizer, const std::string &text,
           bool special) {
  auto ids = tokenizer.encode(text, special);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : Ids();
}

json small() { return fileOf(cases()["cases"][0]); }

} // namespace

TEST(TokenizerJson, MatchesThePackage) {
  const json &texts = cases()["texts"];
  for (const json &one : cases()["cases"]) {
    llvm::Expected<sprig::TokenizerTables> tables = read(fileOf(one));
    ASSERT_TRUE(bool(tables))
        << one["name"] << ": " << llvm::toString(tables.takeError());
    const auto tokenizer = sprig::Tokenizer::create(tables->data());
    ASSERT_TRUE(tokenizer.ok())
        << one["name"] << ": " << tokenizer.status().message();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto text = texts[i].get<std::string>();
      const std::string where =
          one["name"].get<std::string>() + " " + texts[i].dump(-1, ' ', true);
      const Ids special = one["special"][i].get<Ids>();
      const Ids plain =
          one["plain"][i].is_null() ? special : one["plain"][i].get<Ids>();
      EXPECT_EQ(encode(*tokenizer, text, true), special) << where;
      EXPECT_EQ(encode(*tokenizer, text, false), plain) << where;
      if (!one["decoded"][i].is_null())
        EXPECT_EQ(tokenizer->decode(plain),
                  one["decoded"][i].get<std::string>())
            << where;
    }
  }
}

TEST(TokenizerJson, MergesAsStringsOrPairs) {
  json file = small();
  const Ids pairs = read(file)->mergeLeft;
  for (json &merge : file["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(read(file)->mergeLeft, pairs);
  EXPECT_FALSE(pairs.empty());
}

/// Ids that nothing names, and pieces that padding repeats: never made, and nothing is decoded from them.
TEST(TokenizerJson, UnusedIds) {
  json file = small();
  file["model"]["vocab"]["qz"] = 1000;
  file["model"]["merges"].push_back({"q", "z"});
  llvm::Expected<sprig::TokenizerTables> tables = read(file);
  ASSERT_TRUE(bool(tables)) << llvm::toString(tables.takeError());
  const auto tokenizer = sprig::Tokenizer::create(tables->data());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->size(), 1001u);
  for (const uint32_t hole : {600u, 999u}) {
    EXPECT_EQ(tokenizer->type(hole), sprig::TokenType::Unused);
    EXPECT_FALSE(tokenizer->isUsable(hole));
    EXPECT_EQ(tokenizer->decode(Ids{hole, 1000, hole}), "qz");
  }
  EXPECT_TRUE(tokenizer->isUsable(1000));
  const Ids ids = encode(*tokenizer, "qz", false);
  EXPECT_EQ(ids, Ids{1000});
}

TEST(TokenizerJson, TokensAroundAText) {
  json file = small();
  const json special = {{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}};
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special, text, special}},
      {"special_tokens", {{"<|end|>", {{"ids", {400}}}}}}};
  llvm::Expected<sprig::TokenizerTables> tables = read(file);
  ASSERT_TRUE(bool(tables));
  EXPECT_TRUE(tables->addBos && tables->addEos);
  EXPECT_EQ(tables->bos, 400);
  file["post_processor"]["single"] = {special, special, text};
  expectRefusal(
      file,
      "'tokenizer.json' post_processor.single expects at most one token before "
      "a text and one behind it, but got "
      R"([{"SpecialToken":{"id":"<|end|>","type_id":0}},{"SpecialToken":{"id":"<|end|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}])");
}

TEST(TokenizerJson, WhatIsNotSupported) {
  json file = small();
  file["model"]["type"] = "WordPiece";
  expectRefusal(file, "'tokenizer.json' model expects type BPE or Unigram, but "
                      "got \"WordPiece\"");
  file = small();
  file["normalizer"] = {{"type", "BertNormalizer"}};
  expectRefusal(
      file, "'tokenizer.json': tokenizer: expects a normalizer of type NFC, "
            "NFD, NFKC, NFKD, Lowercase, Precompiled, StripAccents, Strip, "
            "Prepend, Replace or Sequence, but got 'BertNormalizer'");
  file = small();
  file["pre_tokenizer"]["type"] = "BertPreTokenizer";
  expectRefusal(file,
                "'tokenizer.json': tokenizer: expects a pre_tokenizer of type "
                "ByteLevel, Digits, Metaspace, Punctuation, Split, Whitespace, "
                "WhitespaceSplit or Sequence, but got 'BertPreTokenizer'");
  file = small();
  file["pre_tokenizer"]["use_regex"] = 7;
  expectRefusal(file, "'tokenizer.json': tokenizer: ByteLevel use_regex "
                      "expects true or false, but got number");
  file = small();
  file["post_processor"] = {{"type", "BertProcessing"}};
  expectRefusal(file,
                "'tokenizer.json' post_processor expects type ByteLevel, "
                "TemplateProcessing or Sequence, but got \"BertProcessing\"");
  file = small();
  file["model"]["end_of_word_suffix"] = "</w>";
  expectRefusal(file, "'tokenizer.json' model.end_of_word_suffix expects none, "
                      "for marks of parts of words are not supported, but got "
                      "\"</w>\"");
}

TEST(TokenizerJson, WhatContradictsItself) {
  expectRefusal(json::array(),
                "'tokenizer.json' expects a JSON object, but got array");
  json file = small();
  file["added_tokens"][0]["id"] = 3;
  expectRefusal(file, "'tokenizer.json' added_tokens expects one token an id, "
                      "but got '$' and '<|end|>' for 3");
  file = small();
  file["model"]["vocab"]["far"] = 1 << 24;
  expectRefusal(file, "'tokenizer.json' model.vocab expects ids of 0 to "
                      "16777215, but got 16777216");
  file = small();
  file["model"]["merges"].push_back({"nobody", "here"});
  llvm::Expected<sprig::TokenizerTables> tables = read(file);
  EXPECT_FALSE(bool(tables));
  EXPECT_NE(llvm::toString(tables.takeError()).find("'nobody' is none"),
            std::string::npos);
}

// Patterns come with a model, from anyone.
TEST(TokenizerJson, PatternsHaveLimits) {
  json file = small();
  const auto pattern = [&](const char *text) {
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern", {{"Regex", text}}},
           {"behavior", "Isolated"},
           {"invert", false}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}};
    return read(file);
  };
  for (const char *broken : {"(", "[a&&b]", "[a[bc]]", "a\\", "\\p{Nobody}"}) {
    auto tables = pattern(broken);
    EXPECT_FALSE(bool(tables)) << broken;
    llvm::consumeError(tables.takeError());
  }
  auto tables = pattern("(?:a|aa)+(?=[bd])");
  ASSERT_TRUE(bool(tables));
  const auto tokenizer = sprig::Tokenizer::create(tables->data());
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_FALSE(tokenizer->encode(std::string(64, 'a') + "c").ok());
}

TEST(TokenizerJson, ManyEqualLetters) {
  for (const json &one : cases()["cases"]) {
    llvm::Expected<sprig::TokenizerTables> tables = read(fileOf(one));
    ASSERT_TRUE(bool(tables));
    const auto tokenizer = sprig::Tokenizer::create(tables->data());
    ASSERT_TRUE(tokenizer.ok());
    const std::string text(1 << 17, 'a');
    const auto ids = tokenizer->encode(text);
    ASSERT_TRUE(ids.ok()) << one["name"] << ids.status().message();
    if (one["name"].get<std::string>().find("Removed") == std::string::npos)
      EXPECT_GE(tokenizer->decode(*ids).size(), text.size()) << one["name"];
  }
}
