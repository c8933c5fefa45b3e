//===- ChatTemplate.h - conversations as a model reads them --------------===//
//
//   Result<ChatTemplate> chat = ChatTemplate::parse(source);
//   ChatInput input;
//   input.messages = R"([{"role": "user", "content": "Hello"}])";
//   Result<std::vector<TextSegment>> text = chat->render(input);
//   Result<std::vector<uint32_t>> tokens = tokenizer.encode(*text);
//
// Templates are programs in a subset of Jinja, as Hugging Face's tokenizers run
// them (its white space settings, tojson, strftime_now, raise_exception). They
// come with the model, from anyone: they cannot reach outside, and limits end
// whatever does not end by itself. What a message says is marked as untrusted
// through every operation, so no text of a message becomes a control token.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Text/MarkedText.h"
#include "runtime/Text/TemplateLimits.h"

#include <ctime>
#include <memory>
#include <optional>

namespace sprig {

namespace jinja {
struct Tree;
}

/// One turn of a conversation.
struct ChatMessage {
  std::string role;
  std::string content;
};

/// The JSON form of plain messages, for ChatInput::messages.
std::string messagesJson(const std::vector<ChatMessage> &messages);

struct ChatInput {
  std::string messages = "[]"; // JSON: a list of {"role": …, "content": …}
  std::string tools;           // JSON: a list of tools; empty: none
  bool addGenerationPrompt = true;
  std::string bosToken, eosToken; // the text of these tokens; trusted
  /// Further names for the template, each with its value in JSON.
  std::vector<std::pair<std::string, std::string>> variables;
  std::optional<std::time_t> now; // for strftime_now; else the present time
};

class ChatTemplate {
public:
  /// InvalidArgument, with "template:line:column", where `source` is no
  /// template of the subset.
  static Result<ChatTemplate> parse(std::string_view source,
                                    TemplateLimits limits = {});

  ChatTemplate(ChatTemplate &&);
  ChatTemplate &operator=(ChatTemplate &&);
  ~ChatTemplate();

  /// The text, in stretches that the template wrote (trusted) and that came
  /// with the input. InvalidArgument, with the place, where the template
  /// refuses the input, makes a mistake or passes a limit. Threads may share a
  /// template.
  Result<std::vector<TextSegment>> render(const ChatInput &input) const;

private:
  ChatTemplate();
  std::unique_ptr<const jinja::Tree> tree;
  TemplateLimits limits;
};

/// The segments joined.
std::string joinText(const std::vector<TextSegment> &segments);

} // namespace sprig
