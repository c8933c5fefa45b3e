//===- Value.h - what a template computes with ---------------------------===//
//
// Python's values, as far as chat templates need them. Strings, lists and
// dictionaries never change once made (the sandbox allows no mutation), so they
// are shared freely and contain no cycles. Namespaces do change; they, macros
// and loops live in the Context until the end of the rendering.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Text/MarkedText.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>

namespace sprig::jinja {

class Value;
struct Dict;
struct Function;
struct List;
struct Loop;
struct Macro;
struct Namespace;

struct None {};
/// A name, item or attribute that is not there; `what` is for messages.
struct Undefined {
  std::shared_ptr<const std::string> what;
};

using Text = std::shared_ptr<const MarkedText>;
using ListRef = std::shared_ptr<const List>;
using DictRef = std::shared_ptr<const Dict>;
using FunctionRef = std::shared_ptr<const Function>;

class Value {
public:
  using Data =
      std::variant<Undefined, None, bool, int64_t, double, Text, ListRef,
                   DictRef, FunctionRef, Namespace *, Macro *, Loop *>;

  Value() = default; // undefined
  Value(Data data) : data(std::move(data)) {}
  Value(bool b) : data(b) {}
  Value(int64_t i) : data(i) {}
  Value(double d) : data(d) {}
  Value(MarkedText text)
      : data(std::make_shared<const MarkedText>(std::move(text))) {}
  static Value none() { return Data(None{}); }
  static Value text(std::string_view s, bool trusted) {
    return MarkedText(s, trusted);
  }
  static Value undefined(std::string what) {
    return Data(
        Undefined{std::make_shared<const std::string>(std::move(what))});
  }

  template <class T> const T *as() const { return std::get_if<T>(&data); }
  bool isUndefined() const { return as<Undefined>(); }
  bool isNone() const { return as<None>(); }
  bool isNumber() const { return as<bool>() || as<int64_t>() || as<double>(); }
  /// The string, or null.
  const MarkedText *string() const {
    return as<Text>() ? as<Text>()->get() : nullptr;
  }
  const List *list() const {
    return as<ListRef>() ? as<ListRef>()->get() : nullptr;
  }
  const Dict *dict() const {
    return as<DictRef>() ? as<DictRef>()->get() : nullptr;
  }
  /// bool and int as an integer.
  std::optional<int64_t> integer() const {
    if (as<bool>())
      return *as<bool>();
    return as<int64_t>() ? std::optional(*as<int64_t>()) : std::nullopt;
  }
  /// Any number as a double.
  std::optional<double> number() const {
    if (as<double>())
      return *as<double>();
    return integer() ? std::optional(static_cast<double>(*integer()))
                     : std::nullopt;
  }

private:
  Data data;
};

/// A list, or a tuple.
struct List {
  std::vector<Value> items;
  bool tuple = false;
  uint32_t depth = 1; // of nesting, at most Context's limit: see Context::list
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;    // in order of insertion
  std::unordered_map<std::string, size_t> index; // of the string keys
  uint32_t depth = 1;

  const Value *find(std::string_view key) const {
    const auto found = index.find(std::string(key));
    return found == index.end() ? nullptr : &items[found->second].second;
  }
};

struct Namespace {
  std::unordered_map<std::string, Value> values;
};

/// The names of one scope; what is not here is looked for further out.
struct Scope {
  std::unordered_map<std::string, Value> values;
  const Scope *outer = nullptr;

  const Value *find(const std::string &name) const {
    for (const Scope *s = this; s; s = s->outer)
      if (const auto found = s->values.find(name); found != s->values.end())
        return &found->second;
    return nullptr;
  }
};

struct Node;
struct Macro {
  const Node *node = nullptr;
  const Scope *scope = nullptr; // where it was made
  Scope captured; // that scope's names, where it was not the outermost
};

/// The variable `loop`.
struct Loop {
  ListRef items;
  size_t index = 0;             // from 0
  std::optional<Value> changed; // what loop.changed saw last
};

/// A method of a value ("split" of a string), or a global function.
struct Function {
  std::string name;
  std::optional<Value> receiver;
};

} // namespace sprig::jinja
