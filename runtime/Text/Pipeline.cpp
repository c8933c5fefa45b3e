#include "runtime/Text/Pipeline.h"
#include "runtime/Text/PipelineJson.h"
#include "runtime/Text/Utf8.h"

#include <nlohmann/json.hpp>

namespace sprig {

using nlohmann::json;

Status StepReader::fail(std::string_view name, std::string_view message) const {
  if (failure.ok())
    failure = Status(StatusCode::Corrupt, "tokenizer: " + type() + " " +
                                              std::string(name) + " " +
                                              std::string(message));
  return failure;
}

const json *StepReader::member(const char *name) const {
  if (!step.is_object())
    return nullptr;
  const auto found = step.find(name);
  return found == step.end() || found->is_null() ? nullptr : &*found;
}

std::string StepReader::type() const {
  const json *value = member("type");
  return value && value->is_string() ? value->get<std::string>() : "";
}

std::string StepReader::text(const char *name) const {
  const json *value = member(name);
  if (!value || !value->is_string()) {
    (void)fail(name, "expects a string, but got " +
                         std::string(value ? value->type_name() : "none"));
    return {};
  }
  return value->get<std::string>();
}

std::string StepReader::text(const char *name, std::string_view absent) const {
  return member(name) ? text(name) : std::string(absent);
}

bool StepReader::flag(const char *name, bool absent) const {
  const json *value = member(name);
  if (!value)
    return absent;
  if (!value->is_boolean())
    (void)fail(name, "expects true or false, but got " +
                         std::string(value->type_name()));
  return value->is_boolean() ? value->get<bool>() : absent;
}

/// `text` as a pattern that matches it alone.
static std::string literally(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !isalnum(c))
      out += '\\';
    out += c;
  }
  return out;
}

Result<Regex> StepReader::pattern() const {
  const json *value = member("pattern");
  if (value && value->is_object())
    for (const char *kind : {"Regex", "String"})
      if (const auto found = value->find(kind);
          found != value->end() && found->is_string()) {
        const auto source = found->get<std::string>();
        return *kind == 'R' ? Regex::compileOniguruma(source)
                            : Regex::compile(literally(source));
      }
  return fail("pattern", "expects a String or a Regex");
}

Result<Pipeline> Pipeline::create(std::string_view text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return Status(StatusCode::Corrupt,
                  "tokenizer: expects normalizer and pre_tokenizer as a JSON "
                  "object, but got " +
                      std::string(root.is_discarded() ? "no valid JSON"
                                                      : root.type_name()));
  Pipeline out;
  const auto step = [&](const char *name) {
    const auto found = root.find(name);
    return found == root.end() ? json() : *found;
  };
  if (Status s = addNormalizer(step("normalizer"), 0, out.normalizers); !s)
    return s;
  if (Status s = addPreTokenizer(step("pre_tokenizer"), 0, out.splits,
                                 out.isByteLevel);
      !s)
    return s;
  return out;
}

Status Pipeline::normalize(std::string &text) const {
  for (const auto &step : normalizers)
    if (Status s = step->apply(text); !s)
      return s;
  return {};
}

Status Pipeline::split(std::string_view text, bool atStart,
                       TextPieces &pieces) const {
  pieces.owned.clear();
  pieces.list.assign(1, text);
  pieces.atStart = atStart;
  for (const auto &step : splits)
    if (Status s = step->apply(pieces); !s)
      return s;
  return {};
}

} // namespace sprig
