// Where filters, tests and global functions are found, and the small ones.
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Unicode.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <cmath>

namespace sprig::jinja {
namespace {

Value range(Context &context, const Arguments &arguments) {
  constexpr int64_t most = 100000; // as Jinja's sandbox
  Binder bind(context, "range", arguments);
  int64_t start = 0, stop = bind.integer("start", 0);
  if (arguments.positional.size() > 1) {
    start = stop;
    stop = bind.integer("stop", 0);
  }
  const int64_t step = bind.integer("step", 1);
  bind.done();
  if (arguments.positional.empty())
    context.fail("range expects an argument");
  if (step == 0)
    context.fail("range expects a step other than 0");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) >= most)
      context.fail("range expects at most " + std::to_string(most) +
                   " numbers");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  context.step(items.size());
  return context.list(std::move(items));
}

Value namespaceOf(Context &context, const Arguments &arguments) {
  Value out = context.makeNamespace();
  Namespace &space = **out.as<Namespace *>();
  for (const Value &value : arguments.positional) {
    if (!value.dict())
      context.fail(std::string("namespace expects a dictionary, but got ") +
                   typeName(value));
    for (const auto &[key, inner] : value.dict()->items)
      space.values[toText(context, key).str()] = inner;
  }
  for (const auto &[name, value] : arguments.named)
    space.values[name] = value;
  return out;
}

Value dictOf(Context &context, const Arguments &arguments) {
  std::vector<std::pair<Value, Value>> items;
  for (const Value &value : arguments.positional) {
    if (!value.dict())
      context.fail(std::string("dict expects a dictionary, but got ") +
                   typeName(value));
    items.insert(items.end(), value.dict()->items.begin(),
                 value.dict()->items.end());
  }
  for (const auto &[name, value] : arguments.named)
    items.emplace_back(Value::text(name, true), value);
  return context.dict(std::move(items));
}

Value strftime(Context &context, const Arguments &arguments) {
  Binder bind(context, "strftime_now", arguments);
  const std::string format = bind.string("format", "").str();
  bind.done();
  std::tm local{};
  if (format.size() > 256 || !localtime_r(&context.now, &local))
    context.fail("strftime_now expects a format of at most 256 bytes");
  char buffer[4096];
  // The space keeps an empty result apart from a failure.
  const size_t size =
      std::strftime(buffer, sizeof(buffer), (format + " ").c_str(), &local);
  if (size == 0)
    context.fail("strftime_now expects a format that makes at most 4095 bytes");
  return Value::text(sanitizeUtf8(std::string_view(buffer, size - 1)), true);
}

constexpr std::string_view kGlobals[] = {"range", "namespace", "dict",
                                         "raise_exception", "strftime_now"};

Value callGlobal(Context &context, std::string_view name,
                 const Arguments &arguments) {
  if (name == "range")
    return range(context, arguments);
  if (name == "namespace")
    return namespaceOf(context, arguments);
  if (name == "dict")
    return dictOf(context, arguments);
  if (name == "strftime_now")
    return strftime(context, arguments);
  Binder bind(context, name, arguments);
  const std::string message = toText(context, bind.need("message")).str();
  context.fail(message);
}

Value loopMethod(Context &context, Loop &loop, std::string_view name,
                 const Arguments &arguments) {
  if (arguments.positional.empty())
    context.fail("loop." + std::string(name) + " expects an argument");
  if (name == "cycle")
    return arguments.positional[loop.index % arguments.positional.size()];
  const Value now = context.list(arguments.positional);
  const bool changed = !loop.changed || !equals(*loop.changed, now);
  loop.changed = now;
  return Value(changed);
}

constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"};
constexpr std::string_view kListMethods[] = {"count", "index"};

Value dictMethod(Context &context, const Value &receiver, std::string_view name,
                 const Arguments &arguments) {
  Binder bind(context, name, arguments);
  const Dict &dict = *receiver.dict();
  if (name == "get") {
    const Value key = bind.need("key"),
                absent = bind.take("default").value_or(Value::none());
    bind.done();
    if (key.string()) {
      const Value *found = dict.find(key.string()->str());
      return found ? *found : absent;
    }
    return contains(context, receiver, key) ? item(context, receiver, key)
                                            : absent;
  }
  bind.done();
  std::vector<Value> out;
  for (const auto &[key, value] : dict.items)
    out.push_back(name == "keys"     ? key
                  : name == "values" ? value
                                     : context.list({key, value}, true));
  return context.list(std::move(out));
}

Value listMethod(Context &context, const List &list, std::string_view name,
                 const Arguments &arguments) {
  Binder bind(context, name, arguments);
  const Value wanted = bind.need("value");
  bind.done();
  int64_t count = 0;
  for (size_t i = 0; i < list.items.size(); ++i) {
    context.step();
    if (!equals(list.items[i], wanted))
      continue;
    if (name == "index")
      return Value(static_cast<int64_t>(i));
    ++count;
  }
  if (name == "index")
    context.fail("the value is not in the list");
  return Value(count);
}

template <size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kStringMethods[] = {
    "capitalize",   "casefold",     "center",  "count",    "endswith",
    "find",         "format",       "index",   "isalnum",  "isalpha",
    "isdecimal",    "isdigit",      "islower", "isspace",  "isupper",
    "join",         "ljust",        "lower",   "lstrip",   "partition",
    "removeprefix", "removesuffix", "replace", "rfind",    "rindex",
    "rjust",        "rpartition",   "rsplit",  "rstrip",   "split",
    "splitlines",   "startswith",   "strip",   "swapcase", "title",
    "upper",        "zfill"};

bool isEverywhere(const Value &value, bool (*is)(uint32_t)) {
  if (!value.string())
    return false;
  bool cased = false;
  for (std::string_view rest = value.string()->str(); !rest.empty();) {
    const Utf8Char c = decodeUtf8(rest);
    rest.remove_prefix(c.length);
    if (isUpper(c.code) || isLower(c.code)) {
      if (!is(c.code))
        return false;
      cased = true;
    }
  }
  return cased;
}

} // namespace

bool isGlobal(std::string_view name) { return among(kGlobals, name); }

bool hasMethod(const Value &value, std::string_view name) {
  if (value.string())
    return among(kStringMethods, name);
  if (value.dict())
    return among(kDictMethods, name);
  return value.list() && among(kListMethods, name);
}

Value callFunction(Context &context, const Function &function,
                   const Arguments &arguments) {
  if (!function.receiver)
    return callGlobal(context, function.name, arguments);
  const Value &receiver = *function.receiver;
  if (const auto *loop = receiver.as<Loop *>())
    return loopMethod(context, **loop, function.name, arguments);
  if (receiver.string())
    return stringMethod(context, *receiver.string(), function.name, arguments);
  if (receiver.dict())
    return dictMethod(context, receiver, function.name, arguments);
  return listMethod(context, *receiver.list(), function.name, arguments);
}

Value applyFilter(Context &context, const std::string &name, const Value &input,
                  const Arguments &arguments) {
  const FilterEntry *entry = findTextFilter(name);
  if (!entry)
    entry = findListFilter(name);
  if (!entry)
    context.fail("there is no filter '" + name + "'");
  return entry->code(context, input, arguments);
}

bool applyTest(Context &context, const std::string &name, const Value &input,
               const Arguments &arguments) {
  Binder bind(context, name, arguments);
  const auto done = [&](bool result) {
    bind.done();
    return result;
  };
  if (name == "defined")
    return done(!input.isUndefined());
  if (name == "undefined")
    return done(input.isUndefined());
  if (name == "none")
    return done(input.isNone());
  if (name == "string")
    return done(input.string());
  if (name == "mapping")
    return done(input.dict());
  if (name == "sequence")
    return done(input.string() || input.list() || input.dict());
  if (name == "iterable")
    return done(input.string() || input.list() || input.dict() ||
                input.isUndefined());
  if (name == "number")
    return done(input.isNumber());
  if (name == "integer")
    return done(input.as<int64_t>());
  if (name == "float")
    return done(input.as<double>());
  if (name == "boolean")
    return done(input.as<bool>());
  if (name == "true" || name == "false")
    return done(input.as<bool>() && *input.as<bool>() == (name == "true"));
  if (name == "callable")
    return done(input.as<Macro *>() || input.as<FunctionRef>());
  if (name == "upper")
    return done(isEverywhere(input, isUpper));
  if (name == "lower")
    return done(isEverywhere(input, isLower));
  if (name == "filter")
    return done(input.string() && (findTextFilter(input.string()->str()) ||
                                   findListFilter(input.string()->str())));
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const int64_t by = name == "divisibleby" ? bind.integer("num", 0) : 2;
    bind.done();
    const Value rest = binary(context, "%", input, Value(by));
    return (*rest.number() == 0) != (name == "odd");
  }
  static constexpr std::pair<std::string_view, std::string_view> orders[] = {
      {"lt", "<"},          {"lessthan", "<"}, {"le", "<="}, {"gt", ">"},
      {"greaterthan", ">"}, {"ge", ">="},      {"<", "<"},   {"<=", "<="},
      {">", ">"},           {">=", ">="}};
  for (const auto &[word, op] : orders)
    if (name == word) {
      const Value other = bind.need("other");
      const int sign = order(context, input, other, op.data());
      return done((op[0] == '<' ? sign < 0 : sign > 0) ||
                  (op.size() == 2 && sign == 0));
    }
  if (name == "eq" || name == "equalto" || name == "==")
    return done(equals(input, bind.need("other")));
  if (name == "ne" || name == "!=")
    return done(!equals(input, bind.need("other")));
  if (name == "in")
    return done(contains(context, bind.need("container"), input));
  if (name == "sameas") { // identity, as far as a template can tell
    const Value other = bind.need("other");
    return done(std::string_view(typeName(input)) == typeName(other) &&
                equals(input, other));
  }
  context.fail("there is no test '" + name + "'");
}

} // namespace sprig::jinja
