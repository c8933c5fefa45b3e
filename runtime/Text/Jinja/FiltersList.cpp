// Filters of lists and dictionaries, and those of any value.
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Operators.h"

#include <algorithm>
#include <utility>

namespace sprig::jinja {
namespace {

/// What to compare an item by: its attribute if one is asked for, and without
/// its case unless that counts.
Value keyOf(Context &context, const Value &item,
            const std::optional<Value> &path, bool caseSensitive) {
  Value key =
      path && !path->isNone() ? attributePath(context, item, *path) : item;
  if (!caseSensitive && key.string())
    return changeCase(context, *key.string(), "lower");
  return key;
}

/// Pairs (key, item), so that keys are made once.
std::vector<Value> keyed(Context &context, const Value &input,
                         const std::optional<Value> &path, bool caseSensitive) {
  std::vector<Value> out;
  for (const Value &item : each(context, input))
    out.push_back(
        context.list({keyOf(context, item, path, caseSensitive), item}, true));
  return out;
}

const Value &first(const Value &pair) { return pair.list()->items[0]; }
const Value &second(const Value &pair) { return pair.list()->items[1]; }

Value sort(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "sort", arguments);
  const bool reverse = bind.flag("reverse", false),
             cased = bind.flag("case_sensitive", false);
  const std::optional<Value> path = bind.take("attribute");
  bind.done();
  std::vector<Value> pairs = keyed(context, input, path, cased);
  stableSort(pairs, [&](const Value &a, const Value &b) {
    return order(context, first(reverse ? b : a), first(reverse ? a : b)) < 0;
  });
  for (Value &pair : pairs)
    pair = Value(second(pair));
  return context.list(std::move(pairs));
}

Value dictSort(Context &context, const Value &input,
               const Arguments &arguments) {
  Binder bind(context, "dictsort", arguments);
  const bool cased = bind.flag("case_sensitive", false);
  const std::string by = bind.string("by", "key").str();
  const bool reverse = bind.flag("reverse", false);
  bind.done();
  if (!input.dict() || (by != "key" && by != "value"))
    context.fail(
        "dictsort expects a dictionary, and 'key' or 'value' to sort by");
  const Value items = callFunction(context, {"items", input}, {});
  return sort(
      context, items,
      {{Value(reverse), Value(cased), Value(int64_t(by == "value"))}, {}});
}

Value groupBy(Context &context, const Value &input,
              const Arguments &arguments) {
  Binder bind(context, "groupby", arguments);
  const Value path = bind.need("attribute");
  const std::optional<Value> absent = bind.take("default");
  const bool cased = bind.flag("case_sensitive", false);
  bind.done();
  std::vector<Value> pairs = keyed(context, input, path, cased);
  if (absent)
    for (Value &pair : pairs)
      if (first(pair).isUndefined())
        pair = context.list({*absent, second(pair)}, true);
  stableSort(pairs, [&](const Value &a, const Value &b) {
    return order(context, first(a), first(b)) < 0;
  });
  std::vector<Value> groups;
  for (size_t begin = 0; begin < pairs.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < pairs.size() && equals(first(pairs[begin]), first(pairs[end]));
         ++end)
      members.push_back(second(pairs[end]));
    Value key = attributePath(context, members[0], path); // as it was spelled
    if (absent && key.isUndefined())
      key = *absent;
    groups.push_back(
        context.list({key, context.list(std::move(members))}, true));
    begin = end;
  }
  return context.list(std::move(groups));
}

Value unique(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "unique", arguments);
  const bool cased = bind.flag("case_sensitive", false);
  const std::optional<Value> path = bind.take("attribute");
  bind.done();
  std::vector<Value> keys, out;
  for (const Value &pair : keyed(context, input, path, cased)) {
    context.step(keys.size());
    if (std::any_of(keys.begin(), keys.end(),
                    [&](const Value &k) { return equals(k, first(pair)); }))
      continue;
    keys.push_back(first(pair));
    out.push_back(second(pair));
  }
  return context.list(std::move(out));
}

Value extreme(Context &context, const Value &input, const Arguments &arguments,
              int sign) {
  Binder bind(context, sign < 0 ? "min" : "max", arguments);
  const bool cased = bind.flag("case_sensitive", false);
  const std::optional<Value> path = bind.take("attribute");
  bind.done();
  const std::vector<Value> pairs = keyed(context, input, path, cased);
  if (pairs.empty())
    return Value::undefined("there is no item");
  const Value *best = &pairs[0];
  for (const Value &pair : pairs)
    if (order(context, first(pair), first(*best)) * sign > 0)
      best = &pair;
  return second(*best);
}
Value minimum(Context &context, const Value &input,
              const Arguments &arguments) {
  return extreme(context, input, arguments, -1);
}
Value maximum(Context &context, const Value &input,
              const Arguments &arguments) {
  return extreme(context, input, arguments, 1);
}

Value sum(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "sum", arguments);
  const std::optional<Value> path = bind.take("attribute");
  Value total = bind.take("start").value_or(Value(int64_t(0)));
  bind.done();
  for (const Value &item : each(context, input))
    total = binary(context, "+", total, keyOf(context, item, path, true));
  return total;
}

Value join(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "join", arguments);
  const std::optional<Value> given = bind.take("d");
  const MarkedText separator = given ? toText(context, *given) : MarkedText();
  const std::optional<Value> path = bind.take("attribute");
  bind.done();
  MarkedText out;
  bool first = true;
  for (const Value &item : each(context, input)) {
    const MarkedText text = toText(context, keyOf(context, item, path, true));
    context.charge(separator.size() + text.size());
    context.step();
    if (!first)
      out.append(separator);
    out.append(text);
    first = false;
  }
  return Value(std::move(out));
}

/// map(attribute="a", default=d), or map("filter", arguments…).
Value map(Context &context, const Value &input, const Arguments &arguments) {
  std::vector<Value> out;
  if (!arguments.positional.empty()) {
    const MarkedText *name = arguments.positional[0].string();
    if (!name)
      context.fail("map expects the name of a filter");
    const Arguments rest{
        {arguments.positional.begin() + 1, arguments.positional.end()},
        arguments.named};
    for (const Value &item : each(context, input))
      out.push_back(applyFilter(context, name->str(), item, rest));
    return context.list(std::move(out));
  }
  Binder bind(context, "map", arguments);
  const Value path = bind.need("attribute");
  const std::optional<Value> absent = bind.take("default");
  bind.done();
  for (const Value &item : each(context, input)) {
    Value value = attributePath(context, item, path);
    out.push_back(absent && value.isUndefined() ? *absent : value);
  }
  return context.list(std::move(out));
}

/// select, reject, selectattr, rejectattr.
Value choose(Context &context, const Value &input, const Arguments &arguments,
             bool byAttribute, bool wanted) {
  Arguments rest = arguments;
  const auto shift = [&]() -> std::optional<Value> {
    if (rest.positional.empty())
      return std::nullopt;
    Value value = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  const std::optional<Value> path = byAttribute ? shift() : std::nullopt;
  if (byAttribute && !path)
    context.fail("expects the name of an attribute to select by");
  const std::optional<Value> test = shift();
  if (test && !test->string())
    context.fail("expects the name of a test to select by");
  std::vector<Value> out;
  for (const Value &item : each(context, input)) {
    context.step();
    const Value value = keyOf(context, item, path, true);
    const bool holds =
        test ? applyTest(context, test->string()->str(), value, rest)
             : truth(value);
    if (holds == wanted)
      out.push_back(item);
  }
  return context.list(std::move(out));
}
template <bool byAttribute, bool wanted>
Value chooser(Context &context, const Value &input,
              const Arguments &arguments) {
  return choose(context, input, arguments, byAttribute, wanted);
}

Value batch(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "batch", arguments);
  const int64_t size = bind.integer("linecount", 0);
  const std::optional<Value> fill = bind.take("fill_with");
  bind.done();
  if (size < 1 || size > 100000)
    context.fail("batch expects a size of 1 to 100000");
  std::vector<Value> rows, row;
  const auto flush = [&] {
    rows.push_back(context.list(std::exchange(row, {})));
  };
  for (const Value &item : each(context, input)) {
    row.push_back(item);
    if (static_cast<int64_t>(row.size()) == size)
      flush();
  }
  if (!row.empty()) {
    while (fill && !fill->isNone() && static_cast<int64_t>(row.size()) < size)
      row.push_back(*fill);
    flush();
  }
  return context.list(std::move(rows));
}

Value firstOf(Context &context, const Value &input,
              const Arguments &arguments) {
  Binder(context, "first", arguments).done();
  const ListRef items = iterate(context, input);
  return items->items.empty() ? Value::undefined("there is no first item")
                              : items->items.front();
}
Value lastOf(Context &context, const Value &input, const Arguments &arguments) {
  Binder(context, "last", arguments).done();
  const ListRef items = iterate(context, input);
  return items->items.empty() ? Value::undefined("there is no last item")
                              : items->items.back();
}

Value reverse(Context &context, const Value &input,
              const Arguments &arguments) {
  Binder(context, "reverse", arguments).done();
  if (input.string())
    return slice(context, input, std::nullopt, std::nullopt, -1);
  std::vector<Value> items = iterate(context, input)->items;
  std::reverse(items.begin(), items.end());
  return context.list(std::move(items));
}

Value toList(Context &context, const Value &input, const Arguments &arguments) {
  Binder(context, "list", arguments).done();
  return context.list(iterate(context, input)->items);
}

Value itemsOf(Context &context, const Value &input,
              const Arguments &arguments) {
  Binder(context, "items", arguments).done();
  if (input.isUndefined())
    return context.list({});
  if (!input.dict())
    context.fail(std::string("items expects a dictionary, but got ") +
                 typeName(input));
  return callFunction(context, {"items", input}, {});
}

Value count(Context &context, const Value &input, const Arguments &arguments) {
  Binder(context, "length", arguments).done();
  return Value(static_cast<int64_t>(length(context, input)));
}

Value defaultTo(Context &context, const Value &input,
                const Arguments &arguments) {
  Binder bind(context, "default", arguments);
  const Value absent = bind.take("default_value").value_or(Value(MarkedText()));
  const bool alsoFalse = bind.flag("boolean", false);
  bind.done();
  return input.isUndefined() || (alsoFalse && !truth(input)) ? absent : input;
}

Value attr(Context &context, const Value &input, const Arguments &arguments) {
  Binder bind(context, "attr", arguments);
  const std::string name = bind.string("name", "").str();
  bind.done();
  return attribute(context, input, name);
}

constexpr FilterEntry kFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"count", count},
    {"d", defaultTo},
    {"default", defaultTo},
    {"dictsort", dictSort},
    {"first", firstOf},
    {"groupby", groupBy},
    {"items", itemsOf},
    {"join", join},
    {"last", lastOf},
    {"length", count},
    {"list", toList},
    {"map", map},
    {"max", maximum},
    {"min", minimum},
    {"reject", chooser<false, false>},
    {"rejectattr", chooser<true, false>},
    {"reverse", reverse},
    {"select", chooser<false, true>},
    {"selectattr", chooser<true, true>},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

} // namespace

const FilterEntry *findListFilter(std::string_view name) {
  for (const FilterEntry &entry : kFilters)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace sprig::jinja
