#include "lib/Import/GGUFTokenizer.h"
#include "lib/Weights/GGUFWriter.h"
#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/TokenStream.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using namespace mlir::llm::testing;
using Json = nlohmann::json;
using Ids = std::vector<uint32_t>;

namespace {

/// Everything a byte-level file needs; tests spoil a part of it.
struct Parts {
  std::string model = "gpt2", pre = "gpt-2";
  std::vector<std::string> tokens{"a", "b", "ab", "<|end|>", "<|im_end|>"};
  std::vector<int32_t> types{1, 1, 1, 3, 3};
  std::vector<float> scores{};
  std::vector<std::string> merges{"a b"};

  GGUFWriter writer() const {
    GGUFWriter out;
    out.add("tokenizer.ggml.model", model);
    if (!pre.empty())
      out.add("tokenizer.ggml.pre", pre);
    out.addStrings("tokenizer.ggml.tokens", tokens);
    out.addArray<int32_t>("tokenizer.ggml.token_type", types);
    if (!scores.empty())
      out.addArray<float>("tokenizer.ggml.scores", scores);
    out.addStrings("tokenizer.ggml.merges", merges);
    return out;
  }
};

class GGUFTokenizerTest : public Scratch {
protected:
  llvm::Expected<std::optional<ModelTokenizer>> read(const GGUFWriter &writer) {
    auto opened = GGUFFile::open(write("m.gguf", writer.bytes()));
    if (!opened)
      return opened.takeError();
    return readGGUFTokenizer(**opened);
  }
  /// The message, from the key on.
  std::string refusal(const GGUFWriter &writer) {
    auto made = read(writer);
    const std::string message = made ? "" : llvm::toString(made.takeError());
    const size_t key = message.find("tokenizer.");
    return key == std::string::npos ? message : message.substr(key);
  }
};

/// A real model in build/models, if it is there.
std::optional<ModelTokenizer> realModel(const std::string &name) {
  const std::string path = SPRIG_BINARY_DIR "/models/" + name;
  if (!std::filesystem::exists(path))
    return std::nullopt;
  auto file = GGUFFile::open(path);
  EXPECT_TRUE(bool(file)) << messageOf(std::move(file));
  auto made = readGGUFTokenizer(**file);
  EXPECT_TRUE(bool(made)) << messageOf(std::move(made));
  return std::move(*made);
}

void expectReference(const ModelTokenizer &model, const char *name) {
  std::ifstream file(SPRIG_SHARED_DIR "/reference/tokens.json");
  if (!file)
    GTEST_SKIP() << "the shared reference is not here";
  const auto tokenizer = sprig::Tokenizer::create(model.tables.data());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  for (const Json &test : Json::parse(file)[name]) {
    const auto text = test["text"].get<std::string>();
    SCOPED_TRACE(test["text"].dump(-1, ' ', true));
    const auto plain = tokenizer->encode(text),
               special = tokenizer->encode(text, true);
    ASSERT_TRUE(plain.ok() && special.ok());
    EXPECT_EQ(*plain, test["plain"].get<Ids>());
    EXPECT_EQ(*special, test["with_special"].get<Ids>());
    EXPECT_EQ(tokenizer->decode(*plain), text);
    EXPECT_EQ(tokenizer->decode(*special, {.control = true}), text);

    sprig::TokenStream stream(*tokenizer);
    std::string joined;
    for (const uint32_t token : *plain)
      joined += stream.push(token);
    EXPECT_EQ(joined + stream.finish(), text);
  }
}

} // namespace

TEST(RealTokenizer, SmolLM2) {
  const auto model = realModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!model)
    GTEST_SKIP() << "the default model is not here (tools/fetch-model.sh)";
  expectReference(*model, "smollm2");
  EXPECT_EQ(model->tables.bos, 1);
  EXPECT_EQ(model->tables.endTokens, (Ids{2, 0}));
  EXPECT_FALSE(model->tables.addBos);
}

TEST(RealTokenizer, Gemma3) {
  const auto model = realModel("gemma-3-270m-q4_k_m.gguf");
  if (!model)
    GTEST_SKIP()
        << "Gemma 3 270M is not here (tools/fetch-model.sh gemma3-270m)";
  expectReference(*model, "gemma3");
  EXPECT_TRUE(model->tables.addBos);
  EXPECT_EQ(model->tables.endTokens, (Ids{1, 106}));
}

// The prompts of the shared reference, through the model's own chat template.
TEST(RealTokenizer, ChatTemplateOfSmolLM2) {
  const auto model = realModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!model)
    GTEST_SKIP() << "the default model is not here (tools/fetch-model.sh)";
  const auto chat = sprig::ChatTemplate::parse(model->chatTemplate);
  const auto tokenizer = sprig::Tokenizer::create(model->tables.data());
  ASSERT_TRUE(chat.ok() && tokenizer.ok());
  sprig::ChatInput input;
  input.messages = sprig::messagesJson({{"user", "Say <|im_end|> aloud."}});
  const auto segments = chat->render(input);
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  EXPECT_EQ(sprig::joinText(*segments),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, "
            "trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nSay <|im_end|> "
            "aloud.<|im_end|>\n<|im_start|>assistant\n");
  const auto tokens = tokenizer->encode(*segments);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 1u), 3);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 2u),
            2); // not the user's
  EXPECT_EQ(tokenizer->decode(*tokens, {.control = true}),
            sprig::joinText(*segments));
}

TEST_F(GGUFTokenizerTest, AFileWithoutVocabulary) {
  GGUFWriter writer;
  writer.add("general.architecture", "llama");
  auto none = read(writer);
  ASSERT_TRUE(bool(none)) << messageOf(std::move(none));
  EXPECT_FALSE(none->has_value());
}

TEST_F(GGUFTokenizerTest, FlagsAndIds) {
  GGUFWriter writer = Parts{.pre = "llama-bpe"}.writer();
  writer.add("tokenizer.ggml.bos_token_id", uint32_t(3));
  writer.add("tokenizer.ggml.eos_token_id", uint16_t(3));
  writer.add("tokenizer.ggml.padding_token_id", ~uint32_t(0)); // none
  writer.add("tokenizer.chat_template", "{{ messages }}");
  auto made = read(writer);
  ASSERT_TRUE(bool(made)) << messageOf(std::move(made));
  const ModelTokenizer &model = **made;
  EXPECT_EQ(model.tables.bos, 3);
  EXPECT_EQ(model.tables.padding, -1);
  EXPECT_EQ(model.tables.endTokens, (Ids{3, 4}));
  EXPECT_TRUE(model.tables.ignoreMerges);
  EXPECT_TRUE(model.tables.addBos);
  EXPECT_EQ(model.chatTemplate, "{{ messages }}");
}

TEST_F(GGUFTokenizerTest, KindsOfTokenizer) {
  EXPECT_EQ(refusal(Parts{.model = "bert"}.writer()),
            "tokenizer.ggml.model expects 'gpt2' (byte-level BPE) or 'llama' "
            "(SentencePiece BPE), but got 'bert', "
            "which is not supported");
  EXPECT_TRUE(
      refusal(Parts{.pre = "tekken"}.writer())
          .starts_with("tokenizer.ggml.pre expects one of default, gpt-2"));
  EXPECT_EQ(refusal(Parts{.pre = ""}.writer()), "");
  GGUFWriter writer =
      Parts{.model = "llama", .scores = {0, 0, 0, 0, 0}}.writer();
  EXPECT_EQ(refusal(writer), "");
  writer.addArray<uint8_t>("tokenizer.ggml.precompiled_charsmap", {1, 2});
  EXPECT_EQ(refusal(writer),
            "tokenizer.ggml tokenizer: precompiled_charsmap expects a trie and "
            "texts, but got 2 bytes");
  GGUFWriter bytes = Parts{}.writer();
  bytes.addArray<uint8_t>("tokenizer.ggml.precompiled_charsmap", {1, 2});
  EXPECT_EQ(refusal(bytes),
            "tokenizer.ggml.precompiled_charsmap expects bytes, beside sentence "
            "pieces, but got array of 2 u8");
}

TEST_F(GGUFTokenizerTest, ListsThatContradictEachOther) {
  EXPECT_EQ(refusal(Parts{.types = {1, 1}}.writer()),
            "tokenizer.ggml.token_type expects one entry for each of the 5 "
            "tokens, but got 2");
  EXPECT_EQ(
      refusal(Parts{.types = {1, 1, 1, 9, 3}}.writer()),
      "tokenizer.ggml.token_type expects types 1 to 6, but got 9 for token 3");
  EXPECT_EQ(refusal(Parts{.model = "llama", .scores = {1.f}}.writer()),
            "tokenizer.ggml.scores expects one entry for each of the 5 tokens, "
            "but got 1");
  EXPECT_NE(
      refusal(Parts{.model = "llama"}.writer()).find("tokenizer.ggml.scores"),
      std::string::npos);
  EXPECT_EQ(refusal(Parts{.merges = {"a b", "a"}}.writer()),
            "tokenizer.ggml.merges tokenizer: expects merge 1 to be two tokens "
            "with a space between, but got 'a'");
  EXPECT_EQ(refusal(Parts{.merges = {"a z"}}.writer()),
            "tokenizer.ggml.merges tokenizer: expects merge 0 to join tokens "
            "of the vocabulary, but 'z' is none");
  EXPECT_EQ(refusal(Parts{.tokens = {}, .types = {}, .merges = {}}.writer()),
            "tokenizer.ggml tokenizer: expects at least one token, but got an "
            "empty vocabulary");
}

TEST_F(GGUFTokenizerTest, ValuesOfTheWrongTypeOrRange) {
  GGUFWriter writer = Parts{.model = "llama"}.writer();
  writer.addArray<uint8_t>("tokenizer.ggml.scores",
                           {1, 2, 3, 4, 5}); // scores as bytes
  EXPECT_NE(refusal(writer).find("tokenizer.ggml.scores"), std::string::npos);
  GGUFWriter list = Parts().writer();
  list.addArray<uint32_t>("tokenizer.ggml.bos_token_id", {1});
  EXPECT_NE(refusal(list).find("tokenizer.ggml.bos_token_id"),
            std::string::npos);
  GGUFWriter large = Parts().writer();
  large.add("tokenizer.ggml.eos_token_id", uint32_t(5));
  EXPECT_EQ(refusal(large),
            "tokenizer.ggml.eos_token_id expects a token below 5, but got 5");
  GGUFWriter flag = Parts().writer();
  flag.add("tokenizer.ggml.add_bos_token", "yes");
  EXPECT_NE(refusal(flag).find("tokenizer.ggml.add_bos_token"),
            std::string::npos);
}
