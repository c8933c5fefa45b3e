//===- Format.h - values as text -----------------------------------------===//
#pragma once

#include "runtime/Text/Jinja/Context.h"

namespace sprig::jinja {

/// Python's repr of a float: the shortest digits that read back the same.
std::string floatText(double value);
/// Python's str: what {{ value }} writes.
MarkedText toText(Context &context, const Value &value);
/// format % arguments, where a tuple holds several.
Value formatPercent(Context &context, const MarkedText &format,
                    const Value &arguments);

struct JsonOptions {
  std::optional<std::string> indent;
  std::string comma = ", ", colon = ": ";
  bool ascii = false, sorted = false;
};
/// Python's json.dumps.
std::string toJson(Context &context, const Value &value,
                   const JsonOptions &options);

/// Appends `text` in quotes; with `ascii`, other characters as \\u escapes.
void appendJsonString(std::string &out, std::string_view text,
                      bool ascii = false);

/// Reads JSON. What `name` says where is for messages. Strings are untrusted,
/// but for a well-known name of a role under the key "role": templates build
/// control tokens around those.
Value parseJson(Context &context, std::string_view json,
                const std::string &name);

} // namespace sprig::jinja
