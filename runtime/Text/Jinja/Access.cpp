// Reaching into values: items, attributes, slices, iteration.
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Unicode.h"

#include <algorithm>
#include <charconv>

namespace sprig::jinja {
namespace {

/// Python's negative indices.
std::optional<size_t> position(int64_t index, size_t size) {
  if (index < 0)
    index += static_cast<int64_t>(size);
  return index >= 0 && index < static_cast<int64_t>(size)
             ? std::optional(static_cast<size_t>(index))
             : std::nullopt;
}

Value character(const MarkedText &text, const std::vector<size_t> &offsets,
                size_t i) {
  return text.slice(offsets[i], offsets[i + 1] - offsets[i]);
}

void needDefined(Context &context, const Value &value) {
  if (const Undefined *undefined = value.as<Undefined>())
    context.fail(undefined->what ? *undefined->what : "the value is undefined");
}

Value missing(const Value &object, const std::string &name) {
  return Value::undefined(std::string("'") + typeName(object) +
                          "' has no attribute '" + name + "'");
}

/// An item that is there, or nothing.
std::optional<Value> findItem(Context &context, const Value &object,
                              const Value &key) {
  if (const Dict *dict = object.dict()) {
    if (key.string()) {
      const Value *found = dict->find(key.string()->str());
      return found ? std::optional(*found) : std::nullopt;
    }
    for (const auto &[k, v] : dict->items) {
      context.step();
      if (equals(k, key))
        return v;
    }
    return std::nullopt;
  }
  if (!key.integer())
    return std::nullopt;
  if (const List *list = object.list()) {
    const auto at = position(*key.integer(), list->items.size());
    return at ? std::optional(list->items[*at]) : std::nullopt;
  }
  if (const MarkedText *text = object.string()) {
    context.step(text->size() / 64);
    const std::vector<size_t> offsets = characterOffsets(text->str());
    const auto at = position(*key.integer(), offsets.size() - 1);
    return at ? std::optional(character(*text, offsets, *at)) : std::nullopt;
  }
  return std::nullopt;
}

Value loopAttribute(Context &context, Loop &loop, const std::string &name) {
  const auto size = static_cast<int64_t>(loop.items->items.size());
  const auto index = static_cast<int64_t>(loop.index);
  const auto neighbour = [&](int64_t at) {
    return at >= 0 && at < size ? loop.items->items[static_cast<size_t>(at)]
                                : Value::undefined("there is no " + name);
  };
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "revindex")
    return Value(size - index);
  if (name == "revindex0")
    return Value(size - index - 1);
  if (name == "first")
    return Value(index == 0);
  if (name == "last")
    return Value(index + 1 == size);
  if (name == "length")
    return Value(size);
  if (name == "depth")
    return Value(int64_t(1)); // of recursion, which there is none of
  if (name == "depth0")
    return Value(int64_t(0));
  if (name == "previtem")
    return neighbour(index - 1);
  if (name == "nextitem")
    return neighbour(index + 1);
  if (name == "cycle" || name == "changed")
    return context.function(name, Value(Value::Data(&loop)));
  return Value::undefined("'loop' has no attribute '" + name + "'");
}

} // namespace

size_t length(Context &context, const Value &value) {
  if (value.string())
    return countCharacters(value.string()->str());
  if (value.list())
    return value.list()->items.size();
  if (value.dict())
    return value.dict()->items.size();
  if (value.isUndefined())
    return 0;
  context.fail(std::string("'") + typeName(value) + "' has no length");
}

ListRef iterate(Context &context, const Value &value) {
  if (value.as<ListRef>())
    return *value.as<ListRef>();
  std::vector<Value> items;
  if (const MarkedText *text = value.string()) {
    const std::vector<size_t> offsets = characterOffsets(text->str());
    context.charge(offsets.size() * 96);
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      items.push_back(character(*text, offsets, i));
  } else if (const Dict *dict = value.dict()) {
    for (const auto &[key, ignored] : dict->items)
      items.push_back(key);
  } else if (!value.isUndefined()) {
    context.fail(std::string("'") + typeName(value) + "' is not iterable");
  }
  return *context.list(std::move(items)).as<ListRef>();
}

Value item(Context &context, const Value &object, const Value &key) {
  needDefined(context, object);
  if (std::optional<Value> found = findItem(context, object, key))
    return *found;
  if (key.string())
    return attribute(context, object, key.string()->str());
  const auto number = key.integer();
  return Value::undefined(std::string("'") + typeName(object) +
                          "' has no item " +
                          (number ? std::to_string(*number) : typeName(key)));
}

Value attribute(Context &context, const Value &object,
                const std::string &name) {
  needDefined(context, object);
  if (const auto *space = object.as<Namespace *>()) {
    const auto found = (*space)->values.find(name);
    return found == (*space)->values.end() ? missing(object, name)
                                           : found->second;
  }
  if (const auto *loop = object.as<Loop *>())
    return loopAttribute(context, **loop, name);
  if (hasMethod(object, name))
    return context.function(name, object);
  if (object.dict())
    if (const Value *found = object.dict()->find(name))
      return *found;
  return missing(object, name);
}

Value slice(Context &context, const Value &object, std::optional<int64_t> start,
            std::optional<int64_t> stop, std::optional<int64_t> stride) {
  needDefined(context, object);
  const List *list = object.list();
  const MarkedText *text = object.string();
  if (!list && !text)
    context.fail(std::string("'") + typeName(object) + "' cannot be sliced");
  const int64_t step = stride.value_or(1);
  if (step == 0)
    context.fail("a slice expects a step other than 0");
  std::vector<size_t> offsets;
  if (text)
    offsets = characterOffsets(text->str());
  const auto size =
      static_cast<int64_t>(text ? offsets.size() - 1 : list->items.size());

  // Python's rules: what is outside is brought to the nearest end.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<int64_t> at, int64_t absent) {
    if (!at)
      return absent;
    return std::clamp(*at < 0 ? *at + size : *at, low, high);
  };
  const int64_t first = bound(start, step > 0 ? 0 : size - 1);
  const int64_t last = bound(stop, step > 0 ? size : -1);
  std::vector<Value> items;
  MarkedText out;
  // Counted first: first + k * step may not fit 64 bits.
  const int64_t distance = step > 0 ? last - first : first - last;
  const uint64_t size64 =
      step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count =
      distance > 0 ? (static_cast<uint64_t>(distance) - 1) / size64 + 1 : 0;
  context.step(count / 16);
  for (uint64_t k = 0; k < count; ++k) {
    const auto at = static_cast<size_t>(first + static_cast<int64_t>(k) * step);
    if (list)
      items.push_back(list->items[at]);
    else
      out.append(*text, offsets[at], offsets[at + 1] - offsets[at]);
  }
  return list ? context.list(std::move(items), list->tuple)
              : context.text(std::move(out));
}

Value attributePath(Context &context, const Value &object, const Value &path) {
  if (path.integer())
    return item(context, object, path);
  if (!path.string())
    context.fail(std::string("expects the name of an attribute, but got ") +
                 typeName(path));
  Value out = object;
  std::string_view rest = path.string()->str();
  while (true) {
    const std::string part(rest.substr(0, rest.find('.')));
    int64_t index = 0;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), index);
    const bool isIndex =
        error == std::errc() && end == part.data() + part.size();
    out = item(context, out, isIndex ? Value(index) : Value::text(part, true));
    if (part.size() == rest.size())
      return out;
    rest.remove_prefix(part.size() + 1);
  }
}

} // namespace sprig::jinja
