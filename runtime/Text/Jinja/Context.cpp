#include "runtime/Text/Jinja/Context.h"
#include "runtime/Text/Jinja/Operators.h"

namespace sprig::jinja {
namespace {

uint32_t depthOf(const Value &value) {
  if (const List *list = value.list())
    return list->depth;
  return value.dict() ? value.dict()->depth : 0;
}

} // namespace

Context::Deeper::Deeper(Context &context) : context(context) {
  if (context.depth >= context.limits.calls)
    context.fail("expects calls and expressions at most " +
                 std::to_string(context.limits.calls) +
                 " deep; the template goes deeper");
  ++context.depth;
}

Value Context::text(MarkedText text) {
  charge(text.size() + 64);
  return Value(std::move(text));
}

Value Context::list(std::vector<Value> items, bool tuple) {
  charge(items.size() * sizeof(Value) + 64);
  auto out = std::make_shared<List>();
  for (const Value &item : items)
    out->depth = std::max(out->depth, depthOf(item) + 1);
  if (out->depth > limits.depth)
    fail("expects lists at most " + std::to_string(limits.depth) + " deep");
  out->items = std::move(items);
  out->tuple = tuple;
  return Value::Data(ListRef(std::move(out)));
}

Value Context::dict(std::vector<std::pair<Value, Value>> items) {
  charge(items.size() * 4 * sizeof(Value) + 64);
  auto out = std::make_shared<Dict>();
  for (auto &[key, value] : items) {
    if (key.list() || key.dict())
      fail(std::string("unhashable type: '") + typeName(key) + "'");
    out->depth = std::max(out->depth, depthOf(value) + 1);
    // A later value of an equal key takes the place of the first, as in Python.
    std::pair<Value, Value> *same = nullptr;
    if (const MarkedText *text = key.string()) {
      const auto [at, isNew] =
          out->index.emplace(text->str(), out->items.size());
      if (!isNew)
        same = &out->items[at->second];
    } else {
      for (auto &item : out->items) {
        step();
        if (equals(item.first, key))
          same = &item;
      }
    }
    if (same)
      same->second = value;
    else
      out->items.emplace_back(key, value);
  }
  if (out->depth > limits.depth)
    fail("expects dictionaries at most " + std::to_string(limits.depth) +
         " deep");
  return Value::Data(DictRef(std::move(out)));
}

Value Context::function(std::string name, std::optional<Value> receiver) {
  charge(128);
  return Value::Data(FunctionRef(std::make_shared<const Function>(
      Function{std::move(name), std::move(receiver)})));
}

std::optional<Value> Binder::take(std::string_view name) {
  if (next < arguments.positional.size())
    return arguments.positional[next++];
  for (size_t i = 0; i < arguments.named.size(); ++i)
    if (arguments.named[i].first == name) {
      used[i] = true;
      return arguments.named[i].second;
    }
  return std::nullopt;
}

Value Binder::need(std::string_view name) {
  std::optional<Value> value = take(name);
  if (!value)
    context.fail(std::string(function) + " expects the argument '" +
                 std::string(name) + "'");
  return *value;
}

bool Binder::flag(std::string_view name, bool absent) {
  const std::optional<Value> value = take(name);
  return value ? truth(*value) : absent;
}

int64_t Binder::integer(std::string_view name, int64_t absent) {
  const std::optional<Value> value = take(name);
  if (!value || value->isNone())
    return absent;
  if (!value->integer())
    context.fail(std::string(function) + " expects an integer as '" +
                 std::string(name) + "', but got " + typeName(*value));
  return *value->integer();
}

MarkedText Binder::string(std::string_view name, std::string_view absent) {
  const std::optional<Value> value = take(name);
  if (!value || value->isNone())
    return MarkedText(absent, true);
  if (!value->string())
    context.fail(std::string(function) + " expects a string as '" +
                 std::string(name) + "', but got " + typeName(*value));
  return *value->string();
}

void Binder::done() {
  if (next < arguments.positional.size())
    context.fail(std::string(function) + " expects at most " +
                 std::to_string(next) + " arguments, but got " +
                 std::to_string(arguments.positional.size()));
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      context.fail(std::string(function) + " has no argument '" +
                   arguments.named[i].first + "'");
}

} // namespace sprig::jinja
