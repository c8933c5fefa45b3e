//===- Context.h - one rendering: limits, memory, errors -----------------===//
#pragma once

#include "runtime/Text/Jinja/Ast.h"
#include "runtime/Text/TemplateLimits.h"

#include <ctime>

namespace sprig::jinja {

/// What every operation of one rendering shares. It counts the work, so that a
/// template of any kind ends, and owns what a template may change.
class Context {
public:
  Context(const TemplateLimits &limits, std::time_t now)
      : limits(limits), now(now) {}

  /// Where the operation at hand stands; `fail` names it.
  Place place;
  [[noreturn]] void fail(std::string message) const {
    throw Error{std::move(message), place};
  }

  /// Every evaluation of a node and every element looked at is a step.
  void step(uint64_t count = 1) {
    if ((steps += count) > limits.steps)
      fail("expects at most " + std::to_string(limits.steps) +
           " steps; the template takes more");
  }
  /// Counts bytes that are made, before they are.
  void charge(uint64_t count) {
    if (count > limits.bytes || (bytes += count) > limits.bytes)
      fail("expects at most " + std::to_string(limits.bytes) +
           " bytes of values; the template makes more");
  }

  Value text(MarkedText text);
  /// A list or tuple, unless it is nested too deeply.
  Value list(std::vector<Value> items, bool tuple = false);
  Value dict(std::vector<std::pair<Value, Value>> items);
  Value function(std::string name,
                 std::optional<Value> receiver = std::nullopt);
  Value makeNamespace() { return Value::Data(keep(namespaces)); }
  Macro *makeMacro() { return keep(macros); }
  Loop *makeLoop() { return keep(loops); }

  /// Counts the depth of evaluation while it lives.
  struct Deeper {
    explicit Deeper(Context &context);
    ~Deeper() { --context.depth; }
    Context &context;
  };

  const TemplateLimits limits;
  const std::time_t now;

private:
  template <class T> T *keep(std::vector<std::unique_ptr<T>> &list) {
    charge(256);
    list.push_back(std::make_unique<T>());
    return list.back().get();
  }

  uint64_t steps = 0, bytes = 0;
  uint32_t depth = 0;
  std::vector<std::unique_ptr<Namespace>> namespaces;
  std::vector<std::unique_ptr<Macro>> macros;
  std::vector<std::unique_ptr<Loop>> loops;
};

/// The arguments of a call, filter or test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Hands out arguments in the order of the parameters, then checks that none is
/// left:
///   Binder bind(context, "join", arguments);
///   Value separator = bind.take("d").value_or(…);
///   bind.done();
class Binder {
public:
  Binder(Context &context, std::string_view function,
         const Arguments &arguments)
      : context(context), function(function), arguments(arguments),
        used(arguments.named.size(), false) {}

  std::optional<Value> take(std::string_view name);
  Value need(std::string_view name);
  bool flag(std::string_view name, bool absent);
  int64_t integer(std::string_view name, int64_t absent);
  /// The string of that name; a default is the template's own text.
  MarkedText string(std::string_view name, std::string_view absent);
  void done();

private:
  Context &context;
  std::string_view function;
  const Arguments &arguments;
  size_t next = 0;
  std::vector<bool> used;
};

} // namespace sprig::jinja
