#include "runtime/sprig.h"

#include "../Tiny/TinyPackage.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace sprig::test;

namespace {

struct Heard {
  std::vector<uint32_t> tokens;
  std::string text;
  size_t most = SIZE_MAX;
};

int hear(void *user, uint32_t token, const char *text, size_t bytes) {
  Heard &heard = *static_cast<Heard *>(user);
  if (token != UINT32_MAX)
    heard.tokens.push_back(token);
  heard.text.append(text, bytes);
  return heard.tokens.size() >= heard.most;
}

std::string spelled(const std::vector<uint32_t> &tokens) {
  std::string text;
  for (uint32_t token : tokens)
    text += char('A' + token);
  return text;
}

class Api : public testing::Test {
protected:
  void SetUp() override {
    size_t count = 0;
    if (sprig_list_devices(nullptr, 0, &count) != SPRIG_OK || count == 0)
      GTEST_SKIP() << "no Vulkan device here";
    sprig_model_options options;
    sprig_model_options_init(&options);
    options.cache_folder = "";
    options.plan = [](void *user, const sprig_memory_plan *plan) {
      *static_cast<sprig_memory_plan *>(user) = *plan;
    };
    options.plan_user = &plan;
    path = tinyPackage("api");
    ASSERT_EQ(sprig_model_open(path.c_str(), &options, &model), SPRIG_OK)
        << sprig_last_error();
    ASSERT_EQ(sprig_session_create(model, nullptr, &session), SPRIG_OK)
        << sprig_last_error();
  }
  sprig_memory_plan plan{};
  void TearDown() override {
    sprig_session_destroy(session);
    sprig_model_close(model);
  }

  /// Runs the model on `prompt` and returns the result.
  sprig_generation generate(const std::string &prompt,
                            const sprig_generate_options &options,
                            Heard &heard) {
    sprig_generation result{};
    result.struct_bytes = sizeof(result);
    EXPECT_EQ(sprig_generate_text(session, prompt.c_str(), &options, hear,
                                  &heard, &result),
              SPRIG_OK)
        << sprig_last_error();
    return result;
  }

  sprig_generate_options upTo(uint64_t tokens) {
    sprig_generate_options options;
    sprig_generate_options_init(&options);
    options.max_tokens = tokens;
    options.ignore_end = 1;
    return options;
  }

  std::string path;
  sprig_model *model = nullptr;
  sprig_session *session = nullptr;
};

const std::vector<uint32_t> kPrompt = {0, 1, 2};

TEST_F(Api, TellsAboutTheModel) {
  sprig_model_info info{};
  info.struct_bytes = sizeof(info);
  ASSERT_EQ(sprig_model_get_info(model, &info), SPRIG_OK);
  EXPECT_STREQ(info.architecture, "tiny");
  EXPECT_STREQ(info.target, "tiny");
  EXPECT_EQ(info.vocabulary, 50u);
  EXPECT_EQ(info.context, 64u);
  EXPECT_EQ(info.weight_bytes, 556u);
  EXPECT_EQ(info.kv_bytes, 256u);
  // The plan that was told before: exactly what is held now.
  EXPECT_EQ(plan.weights, info.weight_bytes);
  EXPECT_EQ(plan.kv, info.kv_bytes);
  EXPECT_EQ(plan.kv + plan.activations + plan.logits + plan.control,
            info.session_bytes);
  EXPECT_EQ(plan.context, info.context);
  EXPECT_GT(plan.available, 0u);
  // The same within a limit, which leaves room for a smaller context only.
  sprig_model_options limited;
  sprig_model_options_init(&limited);
  limited.cache_folder = "";
  limited.weights = SPRIG_WEIGHTS_STAGED;
  limited.memory_limit = info.weight_bytes + info.session_bytes - 200;
  sprig_model *refused = nullptr;
  EXPECT_EQ(sprig_model_open(path.c_str(), &limited, &refused),
            SPRIG_OUT_OF_MEMORY);
  EXPECT_NE(std::string(sprig_last_error()).find("200 bytes too few; what would "
                                                 "fit: a context of 14 tokens"),
            std::string::npos)
      << sprig_last_error();
  EXPECT_TRUE(info.has_tokenizer);
  EXPECT_EQ(sprig_model_verify(model), SPRIG_OK);
  EXPECT_GE(sprig_session_device_bytes(session),
            info.weight_bytes + info.session_bytes);
  // A caller compiled against an older header knows fewer fields.
  sprig_model_info old{};
  old.struct_bytes = offsetof(sprig_model_info, target);
  ASSERT_EQ(sprig_model_get_info(model, &old), SPRIG_OK);
  EXPECT_STREQ(old.architecture, "tiny");
  EXPECT_EQ(old.target, nullptr);
}

TEST_F(Api, TokenizesBothWays) {
  uint32_t tokens[2] = {99, 99};
  size_t count = 0;
  ASSERT_EQ(sprig_tokenize(model, "ABC", 3, 0, tokens, 2, &count), SPRIG_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(tokens[0], 0u);
  EXPECT_EQ(tokens[1], 1u);
  char text[8] = {};
  ASSERT_EQ(sprig_detokenize(model, kPrompt.data(), 3, 0, text, 8, &count),
            SPRIG_OK);
  EXPECT_EQ(std::string(text, count), "ABC");
  EXPECT_TRUE(sprig_is_end_token(model, 49));
  EXPECT_FALSE(sprig_is_end_token(model, 48));
  EXPECT_EQ(sprig_chat_tokens(model, "[]", nullptr, 0, tokens, 2, &count),
            SPRIG_UNSUPPORTED);
  EXPECT_NE(strstr(sprig_last_error(), "chat template"), nullptr);
}

TEST_F(Api, GeneratesText) {
  Heard heard;
  sprig_generation result = generate("ABC", upTo(9), heard);
  std::vector<uint32_t> expected = tinyGenerate(kPrompt, 9, 50);
  EXPECT_EQ(heard.tokens, expected);
  EXPECT_EQ(result.finish, SPRIG_FINISH_LENGTH);
  EXPECT_EQ(result.tokens, 9u);
  EXPECT_EQ(result.prompt_tokens, 3u);
  EXPECT_EQ(result.computed_tokens, 3u);
  // The same prompt again: only its last token is computed.
  Heard again;
  result = generate("ABC", upTo(9), again);
  EXPECT_EQ(again.tokens, expected);
  EXPECT_EQ(result.computed_tokens, 1u);
}

TEST_F(Api, EndsWhereItShould) {
  std::vector<uint32_t> all = tinyGenerate(kPrompt, 60, 50);
  Heard few;
  few.most = 4;
  EXPECT_EQ(generate("ABC", upTo(20), few).finish, SPRIG_FINISH_LENGTH);
  EXPECT_EQ(few.tokens.size(), 4u);

  Heard full;
  EXPECT_EQ(generate("ABC", upTo(1000), full).finish, SPRIG_FINISH_CONTEXT);
  EXPECT_EQ(full.tokens.size(), 62u); // slots 3 … 64

  // A stop string that spans tokens, and is not a part of the text.
  std::string text = spelled(all);
  std::string stop = text.substr(5, 2);
  const char *stops[] = {"never there", stop.c_str()};
  sprig_generate_options options = upTo(60);
  options.stops = stops;
  options.stop_count = 2;
  Heard stopped;
  EXPECT_EQ(generate("ABC", options, stopped).finish, SPRIG_FINISH_STOP);
  EXPECT_EQ(stopped.text, text.substr(0, text.find(stop)));

  auto end = std::find(all.begin(), all.end(), 49u);
  if (end != all.end()) {
    Heard ended;
    options = upTo(60);
    options.ignore_end = 0;
    EXPECT_EQ(generate("ABC", options, ended).finish, SPRIG_FINISH_STOP);
    EXPECT_EQ(ended.tokens, std::vector<uint32_t>(all.begin(), end + 1));
  }
}

TEST_F(Api, StepsByHand) {
  ASSERT_EQ(sprig_session_start(session, kPrompt.data(), 3, 4), SPRIG_OK);
  std::vector<uint32_t> tokens(4);
  for (uint32_t &token : tokens)
    ASSERT_EQ(sprig_session_next(session, &token), SPRIG_OK);
  EXPECT_EQ(tokens, tinyGenerate(kPrompt, 4, 50));
  EXPECT_EQ(sprig_session_next(session, tokens.data()), SPRIG_INVALID_ARGUMENT);
  EXPECT_EQ(sprig_session_length(session), 7u);
  EXPECT_EQ(sprig_session_match(session, kPrompt.data(), 3), 3u);
  ASSERT_EQ(sprig_session_truncate(session, 2), SPRIG_OK);
  std::vector<float> logits(50);
  ASSERT_EQ(sprig_session_evaluate_last(session, kPrompt.data() + 2, 1,
                                        logits.data()),
            SPRIG_OK);
  EXPECT_EQ(logits[tinyNext(kPrompt, 50)], 1);
  ASSERT_EQ(sprig_session_truncate(session, 0), SPRIG_OK);
  logits.resize(150);
  ASSERT_EQ(sprig_session_evaluate(session, kPrompt.data(), 3, logits.data()),
            SPRIG_OK);
  EXPECT_EQ(logits[tinyNext({0}, 50)], 1);
  EXPECT_EQ(sprig_session_self_test(session, 0.1f), SPRIG_OK)
      << sprig_last_error();
  EXPECT_EQ(sprig_session_length(session), 0u);
}

TEST_F(Api, RefusesNonsense) {
  EXPECT_EQ(sprig_session_start(session, nullptr, 3, 1),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_STREQ(sprig_last_error(), "expects a `tokens`, but got NULL");
  sprig_sampling sampling;
  sprig_sampling_init(&sampling);
  sampling.min_p = 2;
  EXPECT_EQ(sprig_session_set_sampling(session, &sampling),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_NE(strstr(sprig_last_error(), "min-p"), nullptr);
  // A package without programs for trees, and arguments that are not there.
  sprig_speculation speculation;
  sprig_speculation_init(&speculation);
  speculation.drafts = "ngram";
  EXPECT_EQ(sprig_session_set_speculation(session, &speculation),
            SPRIG_UNSUPPORTED);
  EXPECT_NE(strstr(sprig_last_error(), "--tree=16"), nullptr);
  EXPECT_EQ(sprig_session_set_speculation(session, nullptr), SPRIG_OK);
  EXPECT_EQ(sprig_session_largest_tree(session), 0u);
  uint32_t token = 0;
  int32_t parent = -1;
  size_t count = 0;
  EXPECT_EQ(sprig_session_verify(session, &token, &parent, 1, &token, &count,
                                 nullptr),
            SPRIG_UNSUPPORTED);
  EXPECT_EQ(sprig_session_verify(session, &token, nullptr, 1, &token, &count,
                                 nullptr),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_STREQ(sprig_last_error(), "expects a `parents`, but got NULL");
  std::vector<uint32_t> many(65);
  EXPECT_EQ(sprig_session_append(session, many.data(), many.size()),
            SPRIG_CONTEXT);
}

TEST(ApiAlone, FailsInWords) {
  sprig_model *model = nullptr;
  EXPECT_EQ(sprig_model_open(nullptr, nullptr, &model), SPRIG_INVALID_ARGUMENT);
  EXPECT_EQ(sprig_model_open("no.sprig", nullptr, &model), SPRIG_NOT_FOUND);
  EXPECT_NE(strstr(sprig_last_error(), "no.sprig"), nullptr);
  EXPECT_EQ(sprig_model_get_info(nullptr, nullptr), SPRIG_INVALID_ARGUMENT);
  EXPECT_EQ(sprig_session_append(nullptr, nullptr, 0), SPRIG_INVALID_ARGUMENT);
  EXPECT_EQ(sprig_session_length(nullptr), 0u);
  sprig_model_close(nullptr);
  sprig_session_destroy(nullptr);
  EXPECT_STREQ(sprig_version(), "0.1.0");
}

} // namespace
