#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Interpreter.h"
#include "runtime/Text/Jinja/Parser.h"
#include "runtime/Text/Utf8.h"

#include <new>

namespace sprig {
namespace {

Status refuse(const jinja::Error &error) {
  std::string where = "template";
  if (error.place.line > 0)
    where += ":" + std::to_string(error.place.line) + ":" +
             std::to_string(error.place.column);
  return {StatusCode::InvalidArgument, where + ": " + error.message};
}

} // namespace

ChatTemplate::ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate &&) = default;
ChatTemplate &ChatTemplate::operator=(ChatTemplate &&) = default;
ChatTemplate::~ChatTemplate() = default;

// The engine's own errors are exceptions; they end here and in `render`.
Result<ChatTemplate> ChatTemplate::parse(std::string_view source,
                                         TemplateLimits limits) {
  if (source.size() > limits.source)
    return Status(StatusCode::InvalidArgument,
                  "template: expects at most " + std::to_string(limits.source) +
                      " bytes of source, but got " +
                      std::to_string(source.size()));
  try {
    ChatTemplate out;
    out.limits = limits;
    jinja::Parser parser(jinja::lex(sanitizeUtf8(source)), limits.depth);
    out.tree = std::make_unique<const jinja::Tree>(parser.parse());
    return out;
  } catch (const jinja::Error &error) {
    return refuse(error);
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory, "template: out of memory");
  }
}

Result<std::vector<TextSegment>>
ChatTemplate::render(const ChatInput &input) const {
  using jinja::Value;
  try {
    jinja::Context context(limits, input.now.value_or(std::time(nullptr)));
    jinja::Scope globals;
    auto &names = globals.values;
    names["messages"] = parseJson(context, input.messages, "messages");
    names["tools"] = input.tools.empty()
                         ? Value::none()
                         : parseJson(context, input.tools, "tools");
    names["documents"] = Value::none();
    names["add_generation_prompt"] = Value(input.addGenerationPrompt);
    names["bos_token"] = Value::text(input.bosToken, true);
    names["eos_token"] = Value::text(input.eosToken, true);
    for (const auto &[name, json] : input.variables)
      names[name] = parseJson(context, json, "variable '" + name + "'");
    return jinja::Interpreter(context, globals).run(*tree).segments();
  } catch (const jinja::Error &error) {
    return refuse(error);
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory, "template: out of memory");
  }
}

std::string messagesJson(const std::vector<ChatMessage> &messages) {
  std::string out = "[";
  for (const ChatMessage &message : messages) {
    out += out.size() > 1 ? ", {\"role\": " : "{\"role\": ";
    jinja::appendJsonString(out, message.role);
    out += ", \"content\": ";
    jinja::appendJsonString(out, message.content);
    out += "}";
  }
  return out + "]";
}

std::string joinText(const std::vector<TextSegment> &segments) {
  std::string out;
  for (const TextSegment &segment : segments)
    out += segment.text;
  return out;
}

} // namespace sprig
