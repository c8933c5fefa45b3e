// Templates against Jinja, see generate_template_cases.py, against the
// transformers package, see generate_chat_cases.py, and against the shared
// reference.
#include "runtime/Text/ChatTemplate.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace sprig;
using Json = nlohmann::ordered_json;

namespace {

/// The text, or "error: …".
std::string render(const std::string &source, const ChatInput &input) {
  const auto chat = ChatTemplate::parse(source);
  if (!chat.ok())
    return "error: " + chat.status().message();
  const auto text = chat->render(input);
  return text.ok() ? joinText(*text) : "error: " + text.status().message();
}

void expectCase(const Json &test, const std::string &got) {
  const bool refused = got.starts_with("error: template:");
  if (test.contains("error") && !test["error"].is_null())
    EXPECT_TRUE(refused) << "expects " << test["error"] << ", but got " << got;
  else
    EXPECT_EQ(got, test["expected"].get<std::string>());
}

} // namespace

TEST(TemplateCases, MatchJinja) {
  std::ifstream file(SPRIG_SOURCE_DIR "/test/runtime/Text/template_cases.json");
  const Json json = Json::parse(file);
  ChatInput input;
  for (const auto &[name, value] : json["context"].items()) {
    if (name == "messages")
      input.messages = value.dump();
    else
      input.variables.emplace_back(name, value.dump());
  }
  for (const Json &test : json["cases"]) {
    const auto source = test["template"].get<std::string>();
    SCOPED_TRACE(source);
    expectCase(test, render(source, input));
  }
}

TEST(TemplateCases, MatchTransformers) {
  const std::string folder = SPRIG_SOURCE_DIR "/test/runtime/Text/";
  std::ifstream file(folder + "chat_cases.json");
  const Json json = Json::parse(file);
  for (const Json &test : json["cases"]) {
    const auto name = test["template"].get<std::string>();
    const auto conversation = test["conversation"].get<std::string>();
    SCOPED_TRACE(name + " " + conversation);
    std::ifstream source(folder + "templates/" + name + ".jinja");
    const std::string text{std::istreambuf_iterator<char>(source), {}};
    ChatInput input;
    input.messages = json["conversations"][conversation].dump();
    if (test["tools"].get<bool>())
      input.tools = json["tools"].dump();
    input.addGenerationPrompt = test["add_generation_prompt"].get<bool>();
    input.bosToken = json["special"]["bos_token"].get<std::string>();
    input.eosToken = json["special"]["eos_token"].get<std::string>();
    input.now = json["now"].get<std::time_t>();
    for (const auto &[variable, value] : test["variables"].items())
      input.variables.emplace_back(variable, value.dump());
    expectCase(test, render(text, input));
  }
}

TEST(TemplateCases, MatchTheReference) {
  std::ifstream file(SPRIG_SHARED_DIR "/reference/chat.json");
  if (!file)
    GTEST_SKIP() << "the shared reference is not here";
  const Json json = Json::parse(file);
  for (const Json &test : json["cases"]) {
    const auto name = test["template"].get<std::string>();
    SCOPED_TRACE(name + " " + test["conversation"].get<std::string>());
    ChatInput input;
    input.messages = test["messages"].dump();
    if (!test["tools"].is_null())
      input.tools = test["tools"].dump();
    input.addGenerationPrompt = test["add_generation_prompt"].get<bool>();
    input.bosToken = json["special"]["bos_token"].get<std::string>();
    input.eosToken = json["special"]["eos_token"].get<std::string>();
    for (const auto &[variable, value] : test["variables"].items())
      input.variables.emplace_back(variable, value.dump());
    expectCase(test, render(json["templates"][name].get<std::string>(), input));
  }
}
