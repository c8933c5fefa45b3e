#include "runtime/Text/Jinja/Lexer.h"
#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>

namespace sprig::jinja {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }

class Lexer {
public:
  explicit Lexer(std::string_view raw) {
    // Jinja reads every kind of line end as "\n", and drops one at the end.
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '\r' && i + 1 < raw.size() && raw[i + 1] == '\n')
        continue;
      source += raw[i] == '\r' ? '\n' : raw[i];
    }
    if (!source.empty() && source.back() == '\n')
      source.pop_back();
  }

  std::vector<Token> run() {
    while (at < source.size())
      text();
    push(TokenKind::End, "");
    return std::move(tokens);
  }

private:
  [[noreturn]] void fail(std::string message) {
    throw Error{std::move(message), place};
  }
  std::string_view rest() const { return std::string_view(source).substr(at); }

  /// Moves on, counting lines.
  void skip(size_t count) {
    for (; count > 0; --count, ++at) {
      if (source[at] == '\n')
        place = {place.line + 1, 1};
      else
        ++place.column;
    }
  }
  void push(TokenKind kind, std::string text) {
    tokens.push_back({kind, std::move(text), place});
  }

  /// Text up to the next tag, then the tag.
  void text() {
    size_t open = source.find('{', at);
    while (open != std::string::npos && open + 1 < source.size() &&
           std::string_view("{%#").find(source[open + 1]) ==
               std::string_view::npos)
      open = source.find('{', open + 1);
    if (open == std::string::npos || open + 1 >= source.size())
      open = source.size();
    std::string data = source.substr(at, open - at);
    if (open == source.size()) {
      emitData(data, data.size());
      return;
    }

    const char kind = source[open + 1];
    const char sign = open + 2 < source.size() ? source[open + 2] : ' ';
    emitData(data, kept(data, kind, sign));
    const size_t begin = 2 + (sign == '-' || sign == '+');
    if (kind == '#')
      return comment(begin);
    if (kind == '%' && raw(begin))
      return;
    push(kind == '{' ? TokenKind::OutputBegin : TokenKind::TagBegin, "");
    skip(begin);
    code(kind == '{');
  }

  /// How much of the text before a tag stays.
  size_t kept(std::string_view data, char kind, char sign) {
    if (sign == '-')
      return stripEnd(data).size();
    if (sign == '+' || kind == '{')
      return data.size();
    const size_t line = data.rfind('\n') + 1; // npos + 1 is 0
    const bool whole = line > 0 || lineStart;
    return whole && stripEnd(data.substr(line)).empty() ? line : data.size();
  }

  void emitData(std::string_view data, size_t keep) {
    if (keep > 0)
      push(TokenKind::Data, std::string(data.substr(0, keep)));
    skip(data.size());
  }

  /// After a tag: "-" takes all white space, else a tag takes one newline.
  void endTag(size_t length, bool dash, bool newline) {
    skip(length);
    if (dash)
      skip(rest().size() - stripStart(rest()).size());
    else if (newline && rest().starts_with('\n'))
      skip(1);
    lineStart = at > 0 && source[at - 1] == '\n';
  }

  void comment(size_t begin) {
    const size_t end = source.find("#}", at + begin);
    if (end == std::string::npos)
      fail("expects the end of the comment '#}'");
    const char sign = end > at + begin ? source[end - 1] : ' ';
    endTag(end + 2 - at, sign == '-', sign != '+');
  }

  /// "{% raw %} … {% endraw %}" is text. False where the tag is another one.
  bool raw(size_t begin) {
    const auto word = [&](size_t from, std::string_view name, bool &dash,
                          bool &plus) -> size_t {
      std::string_view s = stripStart(std::string_view(source).substr(from));
      if (!s.starts_with(name))
        return 0;
      s = stripStart(s.substr(name.size()));
      dash = s.starts_with('-');
      plus = s.starts_with('+');
      s.remove_prefix(dash || plus);
      return s.starts_with("%}") ? source.size() - s.size() + 2 : 0;
    };
    bool dash = false, plus = false;
    const size_t body = word(at + begin, "raw", dash, plus);
    if (body == 0)
      return false;
    const Place start = place;
    endTag(body - at, dash, false);
    for (size_t open = source.find("{%", at); open != std::string::npos;
         open = source.find("{%", open + 2)) {
      const char sign = open + 2 < source.size() ? source[open + 2] : ' ';
      const size_t end =
          word(open + 2 + (sign == '-' || sign == '+'), "endraw", dash, plus);
      if (end == 0)
        continue;
      const std::string data = source.substr(at, open - at);
      emitData(data, kept(data, '%', sign));
      endTag(end - at, dash, !plus);
      return true;
    }
    place = start;
    fail("expects the end of the raw block '{% endraw %}'");
  }

  void code(bool output) {
    const std::string_view close = output ? "}}" : "%}";
    std::string open; // brackets not yet closed
    while (true) {
      skip(rest().size() - stripStart(rest()).size());
      if (at >= source.size())
        fail("expects '" + std::string(close) +
             "', but got the end of the template");
      const bool dash = rest().starts_with('-'),
                 plus = !output && rest().starts_with('+');
      if (open.empty() && rest().substr(dash || plus).starts_with(close)) {
        push(output ? TokenKind::OutputEnd : TokenKind::TagEnd, "");
        endTag(2 + (dash || plus), dash, !output && !plus);
        return;
      }
      const char c = source[at];
      if (isNameStart(c)) {
        size_t length = 1;
        while (length < rest().size() && isNamePart(rest()[length]))
          ++length;
        push(TokenKind::Name, std::string(rest().substr(0, length)));
        skip(length);
      } else if (isDigit(c)) {
        number();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        symbol(open);
      }
    }
  }

  void number() {
    std::string text;
    size_t length = 0;
    const auto digits = [&] {
      for (; length < rest().size() &&
             (isDigit(rest()[length]) || rest()[length] == '_');
           ++length)
        if (rest()[length] != '_')
          text += rest()[length];
    };
    const auto peek = [&](size_t ahead) {
      return length + ahead < rest().size() ? rest()[length + ahead] : ' ';
    };
    digits();
    bool real = false;
    if (peek(0) == '.' && isDigit(peek(1))) {
      real = true;
      text += '.';
      ++length;
      digits();
    }
    const bool sign = peek(1) == '+' || peek(1) == '-';
    if ((peek(0) == 'e' || peek(0) == 'E') && isDigit(peek(sign ? 2 : 1))) {
      real = true;
      text += rest().substr(length, sign ? 2 : 1);
      length += sign ? 2 : 1;
      digits();
    }
    push(real ? TokenKind::Float : TokenKind::Integer, std::move(text));
    skip(length);
  }

  void string(char quote) {
    size_t end = at + 1;
    while (end < source.size() && source[end] != quote)
      end += source[end] == '\\' ? 2 : 1;
    if (end >= source.size())
      fail("expects the end of the string");
    push(TokenKind::String,
         unescape(std::string_view(source).substr(at + 1, end - at - 1)));
    skip(end + 1 - at);
  }

  /// Python's escapes; what is none stays as it is.
  std::string unescape(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      if (text[0] != '\\' || text.size() < 2) {
        out += text[0];
        text.remove_prefix(1);
        continue;
      }
      const char c = text[1];
      constexpr std::string_view names = "abfnrtv\\'\"",
                                 values = "\a\b\f\n\r\t\v\\'\"";
      size_t used = 2;
      if (const size_t i = names.find(c); i != std::string_view::npos)
        out += values[i];
      else if (c >= '0' && c <= '7')
        used = 1 + numeric(text.substr(1, 3), 8, 1, out);
      else if (c == 'x')
        used = 2 + numeric(text.substr(2, 2), 16, 2, out);
      else if (c == 'u')
        used = 2 + numeric(text.substr(2, 4), 16, 4, out);
      else if (c == 'U')
        used = 2 + numeric(text.substr(2, 8), 16, 8, out);
      else if (c == 'N')
        fail("named characters (\\N) are not supported");
      else if (c != '\n') // a backslash before a line end joins the lines
        out += text.substr(0, 2);
      text.remove_prefix(used);
    }
    return out;
  }

  size_t numeric(std::string_view digits, uint32_t base, size_t least,
                 std::string &out) {
    uint32_t code = 0;
    size_t used = 0;
    for (; used < digits.size(); ++used) {
      const char c = digits[used];
      const uint32_t value =
          isDigit(c)             ? static_cast<uint32_t>(c - '0')
          : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
          : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                 : 99u;
      if (value >= base)
        break;
      code = code * base + value;
    }
    if (used < least)
      fail("expects " + std::to_string(least) +
           " hexadecimal digits in the escape");
    appendUtf8(out, code);
    return used;
  }

  void symbol(std::string &open) {
    static constexpr std::string_view symbols[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
    const auto found =
        std::find_if(std::begin(symbols), std::end(symbols),
                     [&](std::string_view s) { return rest().starts_with(s); });
    if (found == std::end(symbols))
      fail("unexpected character '" +
           std::string(rest().substr(0, decodeUtf8(rest()).length)) + "'");
    constexpr std::string_view opening = "([{", closing = ")]}";
    const char c = (*found)[0];
    if (opening.find(c) != std::string_view::npos)
      open += c;
    if (const size_t i = closing.find(c); i != std::string_view::npos) {
      if (open.empty() || open.back() != opening[i])
        fail(std::string("unexpected '") + c + "'");
      open.pop_back();
    }
    push(TokenKind::Operator, std::string(*found));
    skip(found->size());
  }

  std::string source;
  size_t at = 0;
  Place place{1, 1};
  bool lineStart = true;
  std::vector<Token> tokens;
};

} // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

} // namespace sprig::jinja
