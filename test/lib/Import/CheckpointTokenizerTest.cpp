// The text side of a Hugging Face folder: which files are read, which wins.
#include "lib/Import/CheckpointTokenizer.h"
#include "runtime/Text/Tokenizer.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <nlohmann/json.hpp>

using namespace mlir::llm;
using namespace mlir::llm::testing;
using nlohmann::json;
using Ids = std::vector<uint32_t>;

namespace {

/// Fields of Protocol Buffers.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out += char(0x80 | (value & 0x7F));
  return out += char(value);
}
std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes(uint32_t field, const std::string &value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string piece(const std::string &text, float score, uint32_t type) {
  std::string bits(4, '\0');
  memcpy(bits.data(), &score, 4);
  return bytes(1, bytes(1, text) + varint(2 << 3 | 5) + bits + number(3, type));
}

/// <unk> <s> </s> a b ab, and a space.
std::string sentencePieces(uint64_t modelType) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) +
         piece("a", -2, 1) + piece("b", -2, 1) + piece("ab", -1, 1) +
         piece("\xE2\x96\x81", -3, 1) +
         bytes(2, number(3, modelType) + number(43, uint64_t(-1))) +
         bytes(3, number(4, 0));
}

class CheckpointTokenizerTest : public Scratch {
protected:
  CheckpointTokenizerTest() {
    tokenizer = {
        {"model",
         {{"type", "BPE"},
          {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
          {"merges", {"a b"}}}},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
        {"added_tokens", json::array()}};
    for (const char *name : {"<begin>", "<stop>", "<other>", "<|im_end|>"})
      tokenizer["added_tokens"].push_back(
          {{"id", 3 + tokenizer["added_tokens"].size()},
           {"content", name},
           {"special", true}});
  }
  void put(const char *name, const json &value) {
    write(name, llvm::StringRef(value.dump()));
  }
  llvm::Expected<std::optional<ModelTokenizer>> read() {
    put("tokenizer.json", tokenizer);
    return readCheckpointTokenizer(folder.string());
  }
  ModelTokenizer good() {
    auto made = read();
    EXPECT_TRUE(bool(made)) << llvm::toString(made.takeError());
    return made && *made ? std::move(**made) : ModelTokenizer();
  }
  std::string refusal() {
    auto made = read();
    const std::string message = made ? "" : llvm::toString(made.takeError());
    return message.substr(std::min(message.size(), folder.string().size() + 2));
  }

  json tokenizer;
};

} // namespace

TEST_F(CheckpointTokenizerTest, AFolderWithoutOne) {
  auto none = readCheckpointTokenizer(folder.string());
  ASSERT_TRUE(bool(none));
  EXPECT_FALSE(*none);
}

TEST_F(CheckpointTokenizerTest, AllEndTokens) {
  EXPECT_EQ(good().tables.endTokens, (Ids{6})); // known by its name
  put("config.json", {{"eos_token_id", 5}, {"bos_token_id", 3}});
  EXPECT_EQ(good().tables.endTokens, (Ids{5, 6}));
  put("generation_config.json", {{"eos_token_id", {4, 5, -1}}});
  EXPECT_EQ(good().tables.endTokens, (Ids{4, 5, 6}));
  // What templates see as eos_token comes first.
  put("tokenizer_config.json", {{"eos_token", {{"content", "<other>"}}}});
  EXPECT_EQ(good().tables.endTokens, (Ids{5, 4, 6}));
  EXPECT_EQ(good().tables.bos, 3);
  put("generation_config.json", {{"eos_token_id", 7}});
  EXPECT_EQ(refusal(), "generation_config.json' eos_token_id expects tokens "
                       "below 7, but got 7");
  put("generation_config.json", {{"eos_token_id", "4"}});
  EXPECT_EQ(refusal(), "generation_config.json' eos_token_id expects a token "
                       "or a list of them, but got \"4\"");
}

TEST_F(CheckpointTokenizerTest, TheBeginToken) {
  EXPECT_FALSE(good().tables.addBos);
  put("tokenizer_config.json",
      {{"bos_token", "<begin>"}, {"add_bos_token", true}});
  EXPECT_TRUE(good().tables.addBos);
  EXPECT_EQ(good().tables.bos, 3);
  // A template of the tokenizer stands until the configuration says otherwise.
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "x"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"x", {{"ids", {3}}}}}}};
  put("tokenizer_config.json", {{"bos_token", "<begin>"}});
  EXPECT_TRUE(good().tables.addBos);
  put("tokenizer_config.json",
      {{"bos_token", "<begin>"}, {"add_bos_token", false}});
  EXPECT_FALSE(good().tables.addBos);
}

TEST_F(CheckpointTokenizerTest, ChatTemplates) {
  EXPECT_EQ(good().chatTemplate, "");
  put("tokenizer_config.json",
      {{"chat_template",
        {{{"name", "tool_use"}, {"template", "tools"}},
         {{"name", "default"}, {"template", "plain"}}}}});
  EXPECT_EQ(good().chatTemplate, "plain");
  put("tokenizer_config.json", {{"chat_template", "one"}});
  EXPECT_EQ(good().chatTemplate, "one");
  put("chat_template.json", {{"chat_template", "two"}});
  EXPECT_EQ(good().chatTemplate, "two");
  write("chat_template.jinja", llvm::StringRef("three"));
  EXPECT_EQ(good().chatTemplate, "three");
  put("chat_template.json", 7);
  std::filesystem::remove(folder.string() + "/chat_template.jinja");
  EXPECT_EQ(refusal(),
            "chat_template.json' expects a JSON object, but got number");
}

TEST_F(CheckpointTokenizerTest, TokensThatOnlyTheConfigurationAdds) {
  put("tokenizer_config.json",
      {{"added_tokens_decoder",
        {{"8", {{"content", "<new>"}, {"special", true}}},
         {"0", {{"content", "a"}, {"special", false}}}}}});
  const ModelTokenizer made = good();
  const auto text = sprig::Tokenizer::create(made.tables.data());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->size(), 9u);
  EXPECT_EQ(text->type(7), sprig::TokenType::Unused);
  EXPECT_EQ(*text->encode("ab<new>", true), (Ids{2, 8}));
  EXPECT_FALSE(text->isUsable(7)); // padding is never sampled
}

TEST_F(CheckpointTokenizerTest, SentencePieceModels) {
  for (const uint64_t type : {2, 1}) {
    write("tokenizer.model", llvm::StringRef(sentencePieces(type)));
    auto made = readCheckpointTokenizer(folder.string());
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    const sprig::TokenizerTables &tables = (*made)->tables;
    EXPECT_EQ(tables.bos, 1);
    EXPECT_TRUE(tables.addBos);
    EXPECT_EQ(tables.padding, -1);
    EXPECT_EQ(tables.endTokens, (Ids{2}));
    const auto text = sprig::Tokenizer::create(tables.data());
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text->encode("ab b?"), (Ids{6, 5, 6, 4, 0}));
    EXPECT_EQ(text->decode(Ids{6, 5, 6, 4}), "ab b");
  }
}

// What the sentencepiece package makes of such models: a symbol of the model's own neither ends a sentence nor begins
// one, keeps the spaces beside it, and is not mapped.
TEST_F(CheckpointTokenizerTest, SentencePieceSymbolsLieWithinASentence) {
  for (const uint64_t type : {2, 1})
    for (const bool prefix : {true, false}) {
      write("tokenizer.model",
            llvm::StringRef(sentencePieces(type) + piece("[I]", 0, 4) + bytes(3, number(3, prefix) + number(4, 1))));
      auto made = readCheckpointTokenizer(folder.string());
      ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
      const auto text = sprig::Tokenizer::create((*made)->tables.data());
      ASSERT_TRUE(text.ok());
      const auto expect = [&](const char *of, Ids tokens) {
        if (prefix)
          tokens.insert(tokens.begin(), 6);
        EXPECT_EQ(*text->encode(of), tokens) << of << " type " << type << " prefix " << prefix;
      };
      expect("[I]a[I] b", {7, 3, 7, 6, 4});
      expect("[I] a  [I]", {7, 6, 3, 6, 7});
      expect("  a[I]  ", {3, 7});
      EXPECT_EQ(text->decode(*text->encode("[I]a[I] b")), "[I]a[I] b");
    }
}

TEST_F(CheckpointTokenizerTest, SentencePieceModelsThatAreNone) {
  const auto refusal = [&](const std::string &model) {
    write("tokenizer.model", llvm::StringRef(model));
    auto made = readCheckpointTokenizer(folder.string());
    const std::string message = made ? "" : llvm::toString(made.takeError());
    return message.substr(std::min(message.size(), folder.string().size() + 2));
  };
  const std::string model = sentencePieces(2);
  EXPECT_EQ(refusal(""), "tokenizer.model' expects a SentencePiece model, but "
                         "got no pieces");
  EXPECT_EQ(refusal(model.substr(0, model.size() - 1)),
            "tokenizer.model' expects a SentencePiece model, but got a broken "
            "message");
  EXPECT_EQ(refusal(sentencePieces(3)), "tokenizer.model' model_type expects 1 "
                                        "(unigram) or 2 (BPE), but got 3");
  EXPECT_EQ(refusal(model + bytes(3, bytes(2, "map"))),
            "tokenizer.model': tokenizer: precompiled_charsmap expects a trie "
            "and texts, but got 3 bytes");
  EXPECT_EQ(refusal(model + piece("x", 0, 9)),
            "tokenizer.model' piece 7 expects a text, a score and a type of 1 "
            "to 6, but got a broken one, or type 9");
}
