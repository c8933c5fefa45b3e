// Filters that make text or numbers.
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sprig::jinja {
namespace {

/// The filters that are methods of the value's text.
template <size_t N> struct Literal {
  char text[N];
  constexpr Literal(const char (&from)[N]) { std::copy_n(from, N, text); }
};
template <Literal name>
Value method(Context &context, const Value &input, const Arguments &arguments) {
  return stringMethod(context, toText(context, input), name.text, arguments);
}

Value title(Context &context, const Value &input, const Arguments &arguments) {
  Binder(context, "title", arguments).done();
  const MarkedText text = toText(context, input);
  const std::string &s = text.str();
  MarkedText out;
  for (size_t begin = 0;
       begin < s.size();) { // words end at spaces, "-" and opening brackets
    const auto isBreak = [&](size_t at) {
      const Utf8Char c = decodeUtf8(std::string_view(s).substr(at));
      return isSpace(c.code) ||
             (c.code < 0x80 &&
              std::string_view("-({[<").find(s[at]) != std::string_view::npos);
    };
    size_t end = begin;
    const bool gap = isBreak(begin);
    while (end < s.size() && isBreak(end) == gap)
      end += decodeUtf8(std::string_view(s).substr(end)).length;
    out.append(
        changeCase(context, text.slice(begin, end - begin), "capitalize"));
    begin = end;
  }
  return Value(std::move(out));
}

Value indent(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "indent", arguments);
  const std::optional<Value> width = bind.take("width");
  const bool first = bind.flag("first", false),
             blank = bind.flag("blank", false);
  bind.done();
  MarkedText space;
  if (width && width->string()) {
    space = *width->string();
  } else {
    const int64_t count = width ? width->integer().value_or(4) : 4;
    if (count < 0 || count > 4096)
      context.fail("indent expects a width of 0 to 4096, but got " +
                   std::to_string(count));
    space = MarkedText(std::string(static_cast<size_t>(count), ' '), true);
  }
  MarkedText text = toText(context, input);
  text.append("\n", true);
  const Value lines = stringMethod(context, text, "splitlines", {});
  MarkedText out;
  for (size_t i = 0; i < lines.list()->items.size(); ++i) {
    const MarkedText &line = *lines.list()->items[i].string();
    context.charge(line.size() + space.size() + 1);
    if (i)
      out.append("\n", true);
    if (i ? blank || !line.empty() : first)
      out.append(space);
    out.append(line);
  }
  return Value(std::move(out));
}

Value trim(Context &context, const Value &input, const Arguments &arguments) {
  return stringMethod(context, toText(context, input), "strip", arguments);
}

Value escape(Context &context, const Value &input, const Arguments &arguments) {
  Binder(context, "escape", arguments).done();
  const MarkedText text = toText(context, input);
  constexpr std::string_view special = "&<>\"'";
  constexpr std::string_view names[] = {"&amp;", "&lt;", "&gt;", "&#34;",
                                        "&#39;"};
  context.charge(text.size() * 5);
  MarkedText out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t at = special.find(text.str()[i]);
    if (at == special.npos)
      out.append(text, i, 1);
    else
      out.append(names[at], text.trustedAt(i));
  }
  return Value(std::move(out));
}

Value format(Context &context, const Value &input, const Arguments &arguments) {
  if (!arguments.named.empty())
    context.fail("format expects positional arguments");
  return formatPercent(context, toText(context, input),
                       context.list(arguments.positional, true));
}

Value truncate(Context &context, const Value &input,
               const Arguments &arguments) {
  Binder bind(context, "truncate", arguments);
  const int64_t length = bind.integer("length", 255);
  const bool killWords = bind.flag("killwords", false);
  const MarkedText end = bind.string("end", "...");
  const int64_t leeway = bind.integer("leeway", 5);
  bind.done();
  const MarkedText text = toText(context, input);
  const auto size = static_cast<int64_t>(countCharacters(text.str()));
  const auto tail = static_cast<int64_t>(countCharacters(end.str()));
  if (length < tail || leeway < 0 || length > int64_t(1) << 40)
    context.fail("truncate expects a length of at least that of '" + end.str() +
                 "'");
  if (size <= length + std::min(leeway, int64_t(1) << 40))
    return Value(text);
  const std::vector<size_t> offsets = characterOffsets(text.str());
  size_t cut = offsets[static_cast<size_t>(length - tail)];
  if (!killWords) // up to the last space; without one, as it is
    if (const size_t space = text.str().substr(0, cut).rfind(' ');
        space != std::string::npos)
      cut = space;
  MarkedText out = text.slice(0, cut);
  out.append(end);
  return context.text(std::move(out));
}

Value wordCount(Context &context, const Value &input,
                const Arguments &arguments) {
  Binder(context, "wordcount", arguments).done();
  const Value words =
      stringMethod(context, toText(context, input), "split", {});
  return Value(static_cast<int64_t>(words.list()->items.size()));
}

Value toJsonFilter(Context &context, const Value &input,
                   const Arguments &arguments) {
  Binder bind(context, "tojson", arguments);
  JsonOptions options;
  // The parameters are in the order of the chat templates' own tojson.
  options.ascii = bind.flag("ensure_ascii", false);
  const std::optional<Value> indent = bind.take("indent");
  const std::optional<Value> separators = bind.take("separators");
  options.sorted = bind.flag("sort_keys", false);
  bind.done();
  if (indent && !indent->isNone()) {
    options.comma = ",";
    const int64_t width = indent->integer().value_or(0);
    if (!indent->string() && (!indent->integer() || width > 64))
      context.fail("tojson expects an indent of at most 64 or a string");
    options.indent =
        indent->string()
            ? indent->string()->str()
            : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)),
                          ' ');
  }
  if (separators && !separators->isNone()) {
    const List *pair = separators->list();
    if (!pair || pair->items.size() != 2 || !pair->items[0].string() ||
        !pair->items[1].string())
      context.fail("tojson expects two strings as separators");
    options.comma = pair->items[0].string()->str();
    options.colon = pair->items[1].string()->str();
  }
  return context.text(MarkedText(toJson(context, input, options), false));
}

Value toInteger(Context &context, const Value &input,
                const Arguments &arguments) {
  Binder bind(context, "int", arguments);
  const Value absent = bind.take("default").value_or(Value(int64_t(0)));
  const int64_t base = bind.integer("base", 10);
  bind.done();
  if (input.integer())
    return Value(*input.integer());
  std::optional<double> real = input.number();
  if (const MarkedText *text = input.string()) {
    std::string digits(stripStart(stripEnd(text->str())));
    std::erase(digits, '_');
    std::string_view rest = digits;
    const bool minus = rest.starts_with('-');
    rest.remove_prefix(minus || rest.starts_with('+'));
    if ((base == 16 && (rest.starts_with("0x") || rest.starts_with("0X"))) ||
        (base == 8 && rest.starts_with("0o")) ||
        (base == 2 && rest.starts_with("0b")))
      rest.remove_prefix(2);
    int64_t whole = 0;
    const char *end = rest.data() + rest.size();
    if (base >= 2 && base <= 36 && !rest.empty() && rest[0] != '-') {
      const auto read =
          std::from_chars(rest.data(), end, whole, static_cast<int>(base));
      if (read.ec == std::errc() && read.ptr == end)
        return Value(minus ? -whole : whole);
    }
    double number = 0;
    const auto read = std::from_chars(rest.data(), end, number);
    if (!rest.empty() && rest[0] != '-' && read.ec == std::errc() &&
        read.ptr == end)
      real = minus ? -number : number;
  }
  if (!real || !(std::abs(*real) < 9e18))
    return absent;
  return Value(static_cast<int64_t>(*real));
}

Value toFloat(Context &context, const Value &input,
              const Arguments &arguments) {
  Binder bind(context, "float", arguments);
  const Value absent = bind.take("default").value_or(Value(0.0));
  bind.done();
  if (input.number())
    return Value(*input.number());
  if (const MarkedText *text = input.string()) {
    std::string_view rest = stripStart(stripEnd(text->str()));
    const bool plus = rest.starts_with('+') && !rest.starts_with("+-");
    rest.remove_prefix(plus);
    double number = 0;
    const auto read =
        std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (!rest.empty() && read.ec == std::errc() &&
        read.ptr == rest.data() + rest.size())
      return Value(number);
  }
  return absent;
}

Value absolute(Context &context, const Value &input,
               const Arguments &arguments) {
  Binder(context, "abs", arguments).done();
  if (!input.isNumber())
    context.fail(std::string("abs expects a number, but got ") +
                 typeName(input));
  return *input.number() < 0 ? negate(context, input) : input;
}

Value round(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "round", arguments);
  const int64_t precision = bind.integer("precision", 0);
  const std::string how = bind.string("method", "common").str();
  bind.done();
  if (!input.number() || precision < 0 || precision > 300)
    context.fail("round expects a number, and a precision of 0 to 300");
  const double value = *input.number(),
               scale = std::pow(10.0, static_cast<double>(precision));
  if (how == "ceil")
    return Value(std::ceil(value * scale) / scale);
  if (how == "floor")
    return Value(std::floor(value * scale) / scale);
  if (how != "common")
    context.fail("round expects the method common, ceil or floor, but got '" +
                 how + "'");
  if (!std::isfinite(value))
    return Value(value);
  char buffer[700]; // rounds the exact decimal value, as Python does
  const auto written =
      std::to_chars(buffer, buffer + sizeof(buffer), value,
                    std::chars_format::fixed, static_cast<int>(precision));
  double out = 0;
  std::from_chars(buffer, written.ptr, out);
  return Value(out);
}

Value toString(Context &context, const Value &input,
               const Arguments &arguments) {
  Binder(context, "string", arguments).done();
  return context.text(toText(context, input));
}

constexpr FilterEntry kFilters[] = {
    {"abs", absolute},
    {"capitalize", method<"capitalize">},
    {"center", method<"center">},
    {"e", escape},
    {"escape", escape},
    {"float", toFloat},
    {"format", format},
    {"indent", indent},
    {"int", toInteger},
    {"lower", method<"lower">},
    {"replace", method<"replace">},
    {"round", round},
    {"safe", toString},
    {"string", toString},
    {"title", title},
    {"tojson", toJsonFilter},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", method<"upper">},
    {"wordcount", wordCount},
};

} // namespace

const FilterEntry *findTextFilter(std::string_view name) {
  for (const FilterEntry &entry : kFilters)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace sprig::jinja
