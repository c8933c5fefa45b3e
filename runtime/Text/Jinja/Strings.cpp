// Methods of strings. Positions in a result are bytes of the source, so that
// marks follow; positions that a template sees are characters.
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>

namespace sprig::jinja {
namespace {

Value piece(const MarkedText &text, size_t begin, size_t end) {
  return text.slice(begin, end - begin);
}

/// str.split and str.rsplit; without a separator, runs of white space.
Value split(Context &context, const MarkedText &text,
            const Arguments &arguments, bool right) {
  Binder bind(context, right ? "rsplit" : "split", arguments);
  const std::optional<Value> separator = bind.take("sep");
  const int64_t limit = bind.integer("maxsplit", -1);
  bind.done();
  const uint64_t most = limit < 0 ? UINT64_MAX : static_cast<uint64_t>(limit);
  const std::string &s = text.str();
  std::vector<Value> out;
  if (!separator || separator->isNone()) {
    std::string_view rest = s;
    const auto at = [&] { return static_cast<size_t>(rest.data() - s.data()); };
    while (true) {
      rest = right ? stripEnd(rest) : stripStart(rest);
      if (rest.empty())
        break;
      if (out.size() >= most) {
        out.push_back(piece(text, at(), at() + rest.size()));
        break;
      }
      size_t begin = 0, end = rest.size();
      for (const size_t o : characterOffsets(rest)) {
        if (o >= rest.size() || !isSpace(decodeUtf8(rest.substr(o)).code))
          continue;
        if (!right) {
          end = o;
          break;
        }
        begin = o + decodeUtf8(rest.substr(o)).length;
      }
      out.push_back(piece(text, at() + begin, at() + end));
      context.charge(end - begin + 64);
      context.step(rest.size() / 16);
      rest = right ? rest.substr(0, begin) : rest.substr(end);
    }
  } else {
    if (!separator->string() || separator->string()->empty())
      context.fail("split expects a separator that is a string and not empty");
    const std::string &mark = separator->string()->str();
    size_t begin = 0, end = s.size();
    while (out.size() < most) {
      const size_t at =
          right
              ? (end >= mark.size() ? s.rfind(mark, end - mark.size()) : s.npos)
              : s.find(mark, begin);
      if (at == s.npos)
        break;
      context.charge(96);
      out.push_back(right ? piece(text, at + mark.size(), end)
                          : piece(text, begin, at));
      (right ? end : begin) = right ? at : at + mark.size();
    }
    out.push_back(right ? piece(text, 0, end) : piece(text, begin, s.size()));
    context.charge(s.size());
  }
  if (right)
    std::reverse(out.begin(), out.end());
  return context.list(std::move(out));
}

Value splitLines(Context &context, const MarkedText &text,
                 const Arguments &arguments) {
  Binder bind(context, "splitlines", arguments);
  const bool keep = bind.flag("keepends", false);
  bind.done();
  const std::string &s = text.str();
  std::vector<Value> out;
  for (size_t begin = 0; begin < s.size();) {
    size_t end = begin, next = s.size();
    for (; end < s.size();
         end += decodeUtf8(std::string_view(s).substr(end)).length) {
      const Utf8Char c = decodeUtf8(std::string_view(s).substr(end));
      if ((c.code >= 0x0A && c.code <= 0x0D) ||
          (c.code >= 0x1C && c.code <= 0x1E) || c.code == 0x85 ||
          c.code == 0x2028 || c.code == 0x2029) {
        next = end + c.length + (s.compare(end, 2, "\r\n") == 0);
        break;
      }
    }
    context.charge(96 + next - begin);
    out.push_back(piece(text, begin, keep ? next : end));
    begin = next;
  }
  return context.list(std::move(out));
}

Value replace(Context &context, const MarkedText &text,
              const Arguments &arguments) {
  Binder bind(context, "replace", arguments);
  const Value from = bind.need("old"), to = bind.need("new");
  const int64_t limit = bind.integer("count", -1);
  bind.done();
  if (!from.string() || !to.string())
    context.fail("replace expects strings");
  const std::string &s = text.str(), &old = from.string()->str();
  MarkedText out;
  size_t at = 0;
  for (int64_t count = 0; limit < 0 || count < limit; ++count) {
    size_t found = s.find(old, at);
    if (old.empty()) { // between all characters
      found = at + (count > 0 && at < s.size()
                        ? decodeUtf8(std::string_view(s).substr(at)).length
                        : 0);
      if (count > 0 && at >= s.size())
        break;
    }
    if (found == s.npos)
      break;
    context.charge(found - at + to.string()->size() + 16);
    out.append(text, at, found - at);
    out.append(*to.string());
    at = found + old.size();
  }
  context.charge(s.size() - at);
  out.append(text, at, s.size() - at);
  return Value(std::move(out));
}

/// find, rfind, index, rindex, count.
Value search(Context &context, const MarkedText &text, std::string_view name,
             const Arguments &arguments) {
  Binder bind(context, name, arguments);
  const Value wanted = bind.need("sub");
  bind.done();
  if (!wanted.string())
    context.fail(std::string(name) + " expects a string, but got " +
                 typeName(wanted));
  const std::string &s = text.str(), &mark = wanted.string()->str();
  context.step(s.size() / 64);
  if (name == "count") {
    int64_t count =
        mark.empty() ? static_cast<int64_t>(countCharacters(s)) + 1 : 0;
    for (size_t at = 0; !mark.empty() && (at = s.find(mark, at)) != s.npos;
         at += mark.size())
      ++count;
    return Value(count);
  }
  const size_t at = name[0] == 'r' ? s.rfind(mark) : s.find(mark);
  if (at == s.npos && name.find("index") != name.npos)
    context.fail("the text is not in the string");
  return Value(at == s.npos ? int64_t(-1)
                            : static_cast<int64_t>(countCharacters(
                                  std::string_view(s).substr(0, at))));
}

/// startswith and endswith, which also take a tuple.
bool hasEnd(Context &context, const MarkedText &text, const Value &wanted,
            bool start) {
  if (const List *list = wanted.list())
    return std::any_of(
        list->items.begin(), list->items.end(),
        [&](const Value &one) { return hasEnd(context, text, one, start); });
  if (!wanted.string())
    context.fail(std::string("expects a string, but got ") + typeName(wanted));
  return start ? text.str().starts_with(wanted.string()->str())
               : text.str().ends_with(wanted.string()->str());
}

Value pad(Context &context, const MarkedText &text, std::string_view name,
          const Arguments &arguments) {
  Binder bind(context, name, arguments);
  const int64_t width = bind.integer("width", 0);
  const MarkedText fill = bind.string("fillchar", name == "zfill" ? "0" : " ");
  bind.done();
  const auto size = static_cast<int64_t>(countCharacters(text.str()));
  if (countCharacters(fill.str()) != 1)
    context.fail(std::string(name) + " expects one character to fill with");
  if (width <= size)
    return Value(text);
  const auto padding = static_cast<uint64_t>(width - size);
  context.charge(padding * 4);
  context.step(padding);
  uint64_t before = name == "ljust" ? 0 : padding;
  if (name == "center") // Python puts the odd one left of a text of odd width
    before = padding / 2 + (padding & static_cast<uint64_t>(width) & 1);
  const bool sign = name == "zfill" && (text.str().starts_with('-') ||
                                        text.str().starts_with('+'));
  MarkedText out = text.slice(0, sign);
  for (uint64_t i = 0; i < before; ++i)
    out.append(fill);
  out.append(text, sign, text.size());
  for (uint64_t i = before; i < padding; ++i)
    out.append(fill);
  return Value(std::move(out));
}

Value partition(Context &context, const MarkedText &text,
                const Arguments &arguments, bool right) {
  Binder bind(context, "partition", arguments);
  const Value separator = bind.need("sep");
  bind.done();
  if (!separator.string() || separator.string()->empty())
    context.fail(
        "partition expects a separator that is a string and not empty");
  const std::string &s = text.str(), &mark = separator.string()->str();
  const size_t at = right ? s.rfind(mark) : s.find(mark);
  context.charge(s.size() + 192);
  const Value empty = MarkedText();
  if (at == s.npos)
    return context.list(right ? std::vector{empty, empty, Value(text)}
                              : std::vector{Value(text), empty, empty},
                        true);
  return context.list({piece(text, 0, at), piece(text, at, at + mark.size()),
                       piece(text, at + mark.size(), s.size())},
                      true);
}

/// isdigit and the like: there is a character, and all of them are such.
bool all(std::string_view text, bool (*is)(uint32_t)) {
  bool any = false;
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (!is(c.code))
      return false;
    any = true;
    text.remove_prefix(c.length);
  }
  return any;
}

/// isupper and islower: some character has a case, and none has the other.
bool oneCase(std::string_view text, bool (*is)(uint32_t),
             bool (*isNot)(uint32_t)) {
  bool any = false;
  while (!text.empty()) {
    const Utf8Char c = decodeUtf8(text);
    if (isNot(c.code))
      return false;
    any |= is(c.code);
    text.remove_prefix(c.length);
  }
  return any;
}

} // namespace

MarkedText changeCase(Context &context, const MarkedText &text,
                      std::string_view how) {
  context.charge(text.size() + 64);
  MarkedText out;
  std::string_view rest = text.str();
  bool start = true;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decodeUtf8(rest.substr(at));
    Case which = how == "upper" ? Case::Upper : Case::Lower;
    if (how == "swapcase")
      which = isLower(c.code) ? Case::Upper : Case::Lower;
    else if ((how == "capitalize" || how == "title") && start)
      which = Case::Title;
    start = how == "title" && !isLetter(c.code);
    std::string changed;
    appendCase(changed, c.code, which);
    out.append(changed, text.trustedAt(at));
    at += c.length;
  }
  return out;
}

MarkedText strip(const MarkedText &text,
                 const std::optional<MarkedText> &characters, bool start,
                 bool end) {
  std::string_view rest = text.str();
  if (!characters) {
    rest = start ? stripStart(rest) : rest;
    rest = end ? stripEnd(rest) : rest;
  } else {
    const std::vector<size_t> offsets = characterOffsets(rest);
    const auto inSet = [&](size_t i) {
      const auto c = std::string_view(text.str())
                         .substr(offsets[i], offsets[i + 1] - offsets[i]);
      return characters->str().find(c) != std::string::npos;
    };
    size_t first = 0, last = offsets.size() - 1;
    while (start && first < last && inSet(first))
      ++first;
    while (end && first < last && inSet(last - 1))
      --last;
    return text.slice(offsets[first], offsets[last] - offsets[first]);
  }
  return text.slice(static_cast<size_t>(rest.data() - text.str().data()),
                    rest.size());
}

Value stringMethod(Context &context, const MarkedText &text,
                   std::string_view name, const Arguments &arguments) {
  Binder bind(context, name, arguments);
  if (name == "split" || name == "rsplit")
    return split(context, text, arguments, name[0] == 'r');
  if (name == "splitlines")
    return splitLines(context, text, arguments);
  if (name == "replace")
    return replace(context, text, arguments);
  if (name == "find" || name == "rfind" || name == "index" ||
      name == "rindex" || name == "count")
    return search(context, text, name, arguments);
  if (name == "center" || name == "ljust" || name == "rjust" || name == "zfill")
    return pad(context, text, name, arguments);
  if (name == "partition" || name == "rpartition")
    return partition(context, text, arguments, name[0] == 'r');
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const std::optional<Value> characters = bind.take("chars");
    bind.done();
    if (characters && !characters->isNone() && !characters->string())
      context.fail(std::string(name) + " expects a string, but got " +
                   typeName(*characters));
    context.charge(text.size() + 64);
    return strip(text,
                 characters && characters->string()
                     ? std::optional(*characters->string())
                     : std::nullopt,
                 name != "rstrip", name != "lstrip");
  }
  if (name == "startswith" || name == "endswith") {
    const Value wanted = bind.need("prefix");
    bind.done();
    return Value(hasEnd(context, text, wanted, name[0] == 's'));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const Value wanted = bind.need("prefix");
    bind.done();
    const bool start = name == "removeprefix";
    if (!wanted.string() || !hasEnd(context, text, wanted, start))
      return Value(text);
    const size_t size = wanted.string()->size();
    return start ? piece(text, size, text.size())
                 : piece(text, 0, text.size() - size);
  }
  if (name == "join")
    return applyFilter(context, "join", bind.need("iterable"),
                       {{Value(text)}, {}});
  if (name == "format")
    context.fail("str.format is not supported; use the filter 'format' or '~'");
  bind.done();
  if (name == "isalpha")
    return Value(all(text.str(), isLetter));
  if (name == "isdigit" || name == "isdecimal")
    return Value(all(text.str(), isDecimal));
  if (name == "isalnum")
    return Value(all(text.str(),
                     [](uint32_t c) { return isLetter(c) || isDecimal(c); }));
  if (name == "isspace")
    return Value(all(text.str(), isSpace));
  if (name == "isupper")
    return Value(oneCase(text.str(), isUpper, isLower));
  if (name == "islower")
    return Value(oneCase(text.str(), isLower, isUpper));
  return changeCase(context, text, name == "casefold" ? "lower" : name);
}

} // namespace sprig::jinja
