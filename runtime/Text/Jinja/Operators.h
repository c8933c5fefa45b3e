//===- Operators.h - Python's operators on values ------------------------===//
#pragma once

#include "runtime/Text/Jinja/Context.h"

namespace sprig::jinja {

/// "str", "int", …: Python's name of the value's type.
const char *typeName(const Value &value);

bool truth(const Value &value);
bool equals(const Value &a, const Value &b);
/// Negative, 0 or positive. Fails where Python has no order; `op` is for the
/// message.
int order(Context &context, const Value &a, const Value &b,
          const char *op = "<");
bool contains(Context &context, const Value &container, const Value &item);

/// "+", "-", "*", "/", "//", "%", "**".
Value binary(Context &context, std::string_view op, const Value &a,
             const Value &b);
Value negate(Context &context, const Value &value);

size_t length(Context &context, const Value &value);
/// What a loop runs over: a list's items, a string's characters, a dictionary's
/// keys; nothing for an undefined value.
ListRef iterate(Context &context, const Value &value);

/// The same for a range-based for, which keeps it alive. (It would not keep
/// alive the list that `iterate(…)->items` is a part of.)
struct Each {
  ListRef list;
  auto begin() const { return list->items.begin(); }
  auto end() const { return list->items.end(); }
};
inline Each each(Context &context, const Value &value) {
  return {iterate(context, value)};
}

/// object[key], which falls back to the attribute of that name.
Value item(Context &context, const Value &object, const Value &key);
/// object.name: a method, or else the item of that name.
Value attribute(Context &context, const Value &object, const std::string &name);
/// object[start:stop:step]
Value slice(Context &context, const Value &object, std::optional<int64_t> start,
            std::optional<int64_t> stop, std::optional<int64_t> step);
/// "a.b.0" of a value, as filters take it; an integer is an index.
Value attributePath(Context &context, const Value &object, const Value &path);

/// Stable, and safe with any order, even one that contradicts itself.
template <class Less> void stableSort(std::vector<Value> &items, Less less) {
  std::vector<Value> from;
  for (size_t width = 1; width < items.size(); width *= 2) {
    from = std::move(items);
    items.clear();
    for (size_t begin = 0; begin < from.size(); begin += 2 * width) {
      size_t a = begin, b = std::min(begin + width, from.size());
      const size_t middle = b, end = std::min(begin + 2 * width, from.size());
      while (a < middle || b < end) {
        const bool right = a == middle || (b < end && less(from[b], from[a]));
        items.push_back(from[right ? b++ : a++]);
      }
    }
  }
}

} // namespace sprig::jinja
