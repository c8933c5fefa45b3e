#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <charconv>
#include <cmath>

namespace sprig::jinja {
namespace {

std::string hex(uint32_t code, int digits) {
  std::string out;
  while (digits-- > 0)
    out += "0123456789abcdef"[code >> (4 * digits) & 15];
  return out;
}

void appendQuoted(std::string &out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos &&
                             text.find('"') == std::string_view::npos
                         ? '"'
                         : '\'';
  out += quote;
  for (const char c : text) {
    if (c == quote || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += "\\x" + hex(static_cast<unsigned char>(c), 2);
    else
      out += c;
  }
  out += quote;
}

/// Python's repr.
void appendRepr(Context &context, std::string &out, const Value &value) {
  const Context::Deeper deeper(context); // a namespace may contain itself
  context.step();
  const auto sequence = [&](const std::vector<Value> &items) {
    for (size_t i = 0; i < items.size(); ++i) {
      out += i ? ", " : "";
      appendRepr(context, out, items[i]);
    }
  };
  if (value.string()) {
    context.charge(value.string()->size());
    appendQuoted(out, value.string()->str());
  } else if (const List *list = value.list()) {
    out += list->tuple ? '(' : '[';
    sequence(list->items);
    out += list->tuple ? (list->items.size() == 1 ? ",)" : ")") : "]";
  } else if (const Dict *dict = value.dict()) {
    out += '{';
    for (size_t i = 0; i < dict->items.size(); ++i) {
      out += i ? ", " : "";
      appendRepr(context, out, dict->items[i].first);
      out += ": ";
      appendRepr(context, out, dict->items[i].second);
    }
    out += '}';
  } else if (value.isUndefined()) {
    out += "Undefined";
  } else {
    out += toText(context, value).str();
  }
}

} // namespace

std::string floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                     std::chars_format::scientific);
  std::string text(buffer, written.ptr); // -d.ddde±xx
  const bool negative = text[0] == '-';
  const size_t mark = text.find('e');
  int exponent = 0;
  const char *digitsOfExponent =
      text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digitsOfExponent, text.data() + text.size(), exponent);
  std::string digits = text.substr(negative, 1);
  if (mark > size_t(negative) + 1)
    digits += text.substr(negative + 2, mark - negative - 2);
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1)
      out += "." + digits.substr(1);
    const std::string magnitude = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") +
           (magnitude.size() < 2 ? "0" : "") + magnitude;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') +
           digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

MarkedText toText(Context &context, const Value &value) {
  if (value.string())
    return *value.string();
  if (value.isUndefined())
    return {};
  if (value.isNone())
    return MarkedText("None", true);
  if (value.as<bool>())
    return MarkedText(*value.as<bool>() ? "True" : "False", true);
  if (value.as<int64_t>())
    return MarkedText(std::to_string(*value.as<int64_t>()), true);
  if (value.as<double>())
    return MarkedText(floatText(*value.as<double>()), true);
  if (value.list() || value.dict()) {
    std::string out;
    appendRepr(context, out, value);
    return MarkedText(out, false);
  }
  if (const auto *space = value.as<Namespace *>()) {
    std::string out = "<Namespace {";
    bool first = true;
    for (const auto &[name, inner] : (*space)->values) {
      out += (first ? "'" : ", '") + name + "': ";
      appendRepr(context, out, inner);
      first = false;
    }
    return MarkedText(out + "}>", false);
  }
  return MarkedText(std::string("<") + typeName(value) + ">", true);
}

namespace {

struct Spec {
  bool left = false, zero = false, sign = false, space = false,
       alternate = false;
  size_t width = 0;
  std::optional<size_t> precision;
};

/// Reads digits at `at`, at most 4096.
size_t readNumber(std::string_view text, size_t &at) {
  size_t out = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    out =
        std::min<size_t>(out * 10 + static_cast<size_t>(text[at] - '0'), 4096);
  return out;
}

std::string formatReal(double value, char kind, const Spec &spec) {
  if (!std::isfinite(value))
    return floatText(value);
  char buffer[5200]; // 309 digits before the point and 4096 after it
  const auto style = kind == 'f' || kind == 'F' ? std::chars_format::fixed
                     : kind == 'e' || kind == 'E'
                         ? std::chars_format::scientific
                         : std::chars_format::general;
  const auto written =
      std::to_chars(buffer, buffer + sizeof(buffer), value, style,
                    static_cast<int>(spec.precision.value_or(6)));
  return std::string(buffer, written.ptr);
}

} // namespace

Value formatPercent(Context &context, const MarkedText &format,
                    const Value &arguments) {
  std::vector<Value> values{arguments};
  if (arguments.list() && arguments.list()->tuple)
    values = arguments.list()->items;
  size_t used = 0;
  MarkedText out;
  const std::string &text = format.str();
  for (size_t at = 0; at < text.size();) {
    context.step();
    if (text[at] != '%') {
      const size_t end = std::min(text.find('%', at), text.size());
      out.append(format, at, end - at);
      at = end;
      continue;
    }
    ++at;
    Spec spec;
    for (; at < text.size() &&
           std::string_view("-0+ #").find(text[at]) != std::string_view::npos;
         ++at) {
      spec.left |= text[at] == '-';
      spec.zero |= text[at] == '0';
      spec.sign |= text[at] == '+';
      spec.space |= text[at] == ' ';
    }
    spec.width = readNumber(text, at);
    if (at < text.size() && text[at] == '.')
      spec.precision = readNumber(text, ++at);
    if (at >= text.size())
      context.fail("the format ends inside a '%'");
    const char kind = text[at++];
    if (kind == '%') {
      out.append("%", true);
      continue;
    }
    if (used >= values.size())
      context.fail("the format expects more arguments than the " +
                   std::to_string(values.size()) + " given");
    const Value &value = values[used++];

    MarkedText piece;
    bool number = true;
    if (kind == 's') {
      piece = toText(context, value);
      number = false;
      if (spec.precision) {
        const std::vector<size_t> offsets = characterOffsets(piece.str());
        if (*spec.precision + 1 < offsets.size())
          piece = piece.slice(0, offsets[*spec.precision]);
      }
    } else if (kind == 'r') {
      std::string quoted;
      appendRepr(context, quoted, value);
      piece = MarkedText(quoted, false);
      number = false;
    } else if (!value.isNumber()) {
      context.fail(std::string("%") + kind + " expects a number, but got " +
                   typeName(value));
    } else if (std::string_view("fFeEgG").find(kind) !=
               std::string_view::npos) {
      piece = MarkedText(formatReal(*value.number(), kind, spec), true);
    } else if (std::string_view("diux").find(kind) != std::string_view::npos) {
      const double real = *value.number();
      if (!value.integer() && !(std::abs(real) < 9e18))
        context.fail("expects integers of at most 64 bits");
      const int64_t whole =
          value.integer() ? *value.integer() : static_cast<int64_t>(real);
      char buffer[32];
      const auto written = std::to_chars(buffer, buffer + sizeof(buffer), whole,
                                         kind == 'x' ? 16 : 10);
      std::string digits(buffer, written.ptr);
      const bool minus = digits[0] == '-';
      if (spec.precision && digits.size() - minus < *spec.precision)
        digits.insert(minus, *spec.precision - (digits.size() - minus), '0');
      piece = MarkedText(digits, true);
    } else {
      context.fail(std::string("the format '%") + kind + "' is not supported");
    }

    const bool minus = number && !piece.empty() && piece.str()[0] == '-';
    if (number && !minus && (spec.sign || spec.space)) {
      MarkedText with(spec.sign ? "+" : " ", true);
      with.append(piece);
      piece = with;
    }
    const size_t size = countCharacters(piece.str());
    const size_t padding = spec.width > size ? spec.width - size : 0;
    if (spec.left) {
      out.append(piece);
      out.append(std::string(padding, ' '), true);
    } else if (number && spec.zero) {
      const size_t sign =
          !piece.empty() && std::string_view("+- ").find(piece.str()[0]) !=
                                std::string_view::npos;
      out.append(piece, 0, sign);
      out.append(std::string(padding, '0'), true);
      out.append(piece, sign, piece.size());
    } else {
      out.append(std::string(padding, ' '), true);
      out.append(piece);
    }
    context.charge(padding + piece.size());
  }
  if (used < values.size() && arguments.list() && arguments.list()->tuple)
    context.fail("the format takes " + std::to_string(used) +
                 " arguments, but got " + std::to_string(values.size()));
  if (used == 0 && !(arguments.list() && arguments.list()->tuple) &&
      !arguments.dict())
    context.fail("the format takes no argument, but got one");
  return context.text(std::move(out));
}

} // namespace sprig::jinja
