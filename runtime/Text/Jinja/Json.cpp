// The only file that instantiates the JSON parser, which is large.
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sprig::jinja {
namespace {

bool isRole(std::string_view text) {
  constexpr std::string_view roles[] = {"system",    "developer", "user",
                                        "assistant", "model",     "tool",
                                        "function",  "ipython",   "context"};
  return std::find(std::begin(roles), std::end(roles), text) != std::end(roles);
}

/// Builds values from the parser's events.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Builder(Context &context) : context(context) {}

  Value root;
  std::string problem;

  bool null() override { return add(Value::none()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(int64_t value) override { return add(Value(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t(INT64_MAX))
      return refuse("expects integers of at most 64 bits");
    return add(Value(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string &digits) override {
    if (digits.find_first_of(".eE") ==
        std::string::npos) // an integer, too large
      return number_unsigned(UINT64_MAX);
    return add(Value(value));
  }
  bool string(std::string &value) override {
    const bool role =
        !open.empty() && open.back().key == "role" && isRole(value);
    context.charge(value.size() + 64);
    return add(Value::text(value, role));
  }
  bool binary(nlohmann::json::binary_t &) override {
    return refuse("expects no binary value");
  }
  bool start_object(size_t) override { return start(true); }
  bool start_array(size_t) override { return start(false); }
  bool key(std::string &name) override {
    open.back().key = name;
    return true;
  }
  bool end_object() override {
    Value value = context.dict(std::move(open.back().members));
    open.pop_back();
    return add(std::move(value));
  }
  bool end_array() override {
    std::vector<Value> items;
    for (auto &[key, value] : open.back().members)
      items.push_back(std::move(value));
    open.pop_back();
    return add(context.list(std::move(items)));
  }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::json::exception &error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    std::string_view what = error.what();
    if (const size_t bracket = what.find("] ");
        bracket != std::string_view::npos)
      what.remove_prefix(bracket + 2);
    (void)position;
    return refuse(std::string(what));
  }

private:
  struct Open {
    bool object = false;
    std::string key;
    std::vector<std::pair<Value, Value>> members;
  };

  bool refuse(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool start(bool object) {
    if (open.size() >= context.limits.depth)
      return refuse("expects at most " + std::to_string(context.limits.depth) +
                    " values inside each other");
    open.push_back({object, {}, {}});
    return true;
  }
  bool add(Value value) {
    context.step();
    context.charge(2 * sizeof(Value));
    if (open.empty()) {
      root = std::move(value);
      return true;
    }
    Open &parent = open.back();
    parent.members.emplace_back(parent.object ? Value::text(parent.key, false)
                                              : Value(),
                                std::move(value));
    return true;
  }

  Context &context;
  std::vector<Open> open;
};

} // namespace

void appendJsonString(std::string &out, std::string_view text, bool ascii) {
  const auto escape = [&](uint32_t unit) {
    char buffer[16];
    std::snprintf(buffer, sizeof(buffer), "\\u%04x", unit);
    out += buffer;
  };
  out += '"';
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    constexpr std::string_view plain = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    const size_t named =
        c.code < 0x80 ? plain.find(static_cast<char>(c.code)) : plain.npos;
    if (named != plain.npos) {
      out += '\\';
      out += letters[named];
    } else if (c.code < 0x20 || (ascii && c.code >= 0x7F && c.code < 0x10000 &&
                                 c.code != 0x7F)) {
      escape(c.code);
    } else if (ascii && c.code >= 0x10000) {
      escape(0xD800 + ((c.code - 0x10000) >> 10));
      escape(0xDC00 + ((c.code - 0x10000) & 0x3FF));
    } else {
      appendUtf8(out, c.code);
    }
    text.remove_prefix(c.length);
  }
  out += '"';
}

namespace {

class Writer {
public:
  Writer(Context &context, const JsonOptions &options)
      : context(context), options(options) {}
  std::string out;

  void write(const Value &value) {
    const Context::Deeper deeper(context);
    context.step();
    if (const MarkedText *text = value.string()) {
      context.charge(text->size());
      appendJsonString(out, text->str(), options.ascii);
    } else if (value.isNone()) {
      out += "null";
    } else if (value.as<bool>()) {
      out += *value.as<bool>() ? "true" : "false";
    } else if (value.as<double>()) {
      const double real = *value.as<double>();
      out += std::isnan(real)   ? "NaN"
             : std::isinf(real) ? (real < 0 ? "-Infinity" : "Infinity")
                                : floatText(real);
    } else if (value.as<int64_t>()) {
      out += std::to_string(*value.as<int64_t>());
    } else if (const List *list = value.list()) {
      const size_t count = list->items.size();
      brackets('[', ']', count, [&](size_t i) { write(list->items[i]); });
    } else if (value.dict()) {
      dictionary(*value.dict());
    } else {
      context.fail(std::string("a value of type '") + typeName(value) +
                   "' has no JSON form");
    }
  }

private:
  template <class Item>
  void brackets(char open, char close, size_t count, Item item) {
    out += open;
    ++level;
    for (size_t i = 0; i < count; ++i) {
      if (i)
        out += options.comma;
      newline();
      item(i);
    }
    --level;
    if (count)
      newline();
    out += close;
  }

  void newline() {
    if (!options.indent)
      return;
    context.charge(1 + level * options.indent->size());
    out += '\n';
    for (size_t i = 0; i < level; ++i)
      out += *options.indent;
  }

  void dictionary(const Dict &dict) {
    std::vector<std::pair<std::string, const Value *>> members;
    for (const auto &[key, value] : dict.items) {
      std::string name;
      if (key.string()) {
        name = key.string()->str();
      } else { // numbers and the like become strings
        Writer inner(context, options);
        inner.write(key);
        name = inner.out;
      }
      members.emplace_back(std::move(name), &value);
    }
    if (options.sorted)
      std::sort(members.begin(), members.end(),
                [](const auto &a, const auto &b) { return a.first < b.first; });
    brackets('{', '}', members.size(), [&](size_t i) {
      appendJsonString(out, members[i].first, options.ascii);
      out += options.colon;
      write(*members[i].second);
    });
  }

  Context &context;
  const JsonOptions &options;
  size_t level = 0;
};

} // namespace

std::string toJson(Context &context, const Value &value,
                   const JsonOptions &options) {
  Writer writer(context, options);
  writer.write(value);
  return writer.out;
}

Value parseJson(Context &context, std::string_view json,
                const std::string &name) {
  context.place = {};
  Builder builder(context);
  bool read = false;
  try {
    read = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  } catch (const nlohmann::json::exception &error) {
    builder.problem = error.what();
  }
  if (!read)
    context.fail(name + ": " + builder.problem);
  return builder.root;
}

} // namespace sprig::jinja
