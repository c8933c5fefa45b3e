#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Functions.h"
#include "runtime/Text/Jinja/Interpreter.h"
#include "runtime/Text/Jinja/Operators.h"

#include <algorithm>

namespace sprig::jinja {

Value Interpreter::evaluate(const Node &node, const Scope &scope) {
  const Context::Deeper deeper(context);
  context.place = node.place;
  context.step();
  const auto kid = [&](size_t i) {
    Value value = evaluate(*node.kids[i], scope);
    context.place = node.place;
    return value;
  };
  switch (node.kind) {
  case NodeKind::Constant:
    return node.value;
  case NodeKind::Name: {
    if (const Value *found = scope.find(node.name))
      return *found;
    if (isGlobal(node.name))
      return context.function(node.name);
    return Value::undefined("'" + node.name + "' is undefined");
  }
  case NodeKind::ListOf:
  case NodeKind::TupleOf: {
    std::vector<Value> items;
    for (size_t i = 0; i < node.kids.size(); ++i)
      items.push_back(kid(i));
    return context.list(std::move(items), node.kind == NodeKind::TupleOf);
  }
  case NodeKind::DictOf: {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i + 1 < node.kids.size(); i += 2) {
      Value key = kid(i);
      items.emplace_back(std::move(key), kid(i + 1));
    }
    return context.dict(std::move(items));
  }
  case NodeKind::Conditional:
    if (truth(kid(0)))
      return kid(1);
    return node.kids[2]
               ? kid(2)
               : Value::undefined(
                     "the inline if has no else, and its condition is false");
  case NodeKind::And: {
    Value left = kid(0);
    return truth(left) ? kid(1) : left;
  }
  case NodeKind::Or: {
    Value left = kid(0);
    return truth(left) ? left : kid(1);
  }
  case NodeKind::Not:
    return Value(!truth(kid(0)));
  case NodeKind::Negate:
    return negate(context, kid(0));
  case NodeKind::Plus: {
    const Value value = kid(0);
    if (!value.isNumber())
      context.fail(std::string("'+' does not take '") + typeName(value) + "'");
    return value;
  }
  case NodeKind::Binary: {
    const Value left = kid(0), right = kid(1);
    return binary(context, node.name, left, right);
  }
  case NodeKind::Concat: {
    MarkedText text;
    for (size_t i = 0; i < node.kids.size(); ++i) {
      text.append(toText(context, kid(i)));
      context.charge(text.size());
    }
    return Value(std::move(text));
  }
  case NodeKind::Compare:
    return compare(node, scope);
  case NodeKind::Attribute:
    return attribute(context, kid(0), node.name);
  case NodeKind::Subscript:
    return subscript(node, scope);
  case NodeKind::Call:
    return call(node, scope);
  case NodeKind::Filter:
    return filter(node, scope, nullptr);
  case NodeKind::Test:
    return test(node, scope);
  default:
    context.fail("expects an expression");
  }
}

Value Interpreter::compare(const Node &node, const Scope &scope) {
  Value left = evaluate(*node.kids[0], scope);
  for (size_t i = 0; i < node.names.size(); ++i) {
    const Value right = evaluate(*node.kids[i + 1], scope);
    context.place = node.place;
    const std::string &op = node.names[i];
    bool holds = false;
    if (op == "==" || op == "!=")
      holds = equals(left, right) == (op == "==");
    else if (op == "in" || op == "not in")
      holds = contains(context, right, left) == (op == "in");
    else {
      const int sign = order(context, left, right, op.c_str());
      holds = op[0] == '<' ? sign < 0 : sign > 0;
      holds |= op.size() == 2 && sign == 0;
    }
    if (!holds)
      return Value(false);
    left = right;
  }
  return Value(true);
}

Value Interpreter::subscript(const Node &node, const Scope &scope) {
  const Value object = evaluate(*node.kids[0], scope);
  const Node &key = *node.kids[1];
  if (key.kind != NodeKind::Slice) {
    const Value value = evaluate(key, scope);
    context.place = node.place;
    return item(context, object, value);
  }
  std::optional<int64_t> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!key.kids[i])
      continue;
    const Value value = evaluate(*key.kids[i], scope);
    context.place = node.place;
    if (!value.integer() && !value.isNone())
      context.fail(std::string("a slice expects integers, but got ") +
                   typeName(value));
    parts[i] = value.integer();
  }
  context.place = node.place;
  return slice(context, object, parts[0], parts[1], parts[2]);
}

Arguments Interpreter::arguments(const Node &node, const Scope &scope) {
  Arguments out;
  for (size_t i = 1; i < node.kids.size(); ++i)
    out.positional.push_back(evaluate(*node.kids[i], scope));
  for (size_t i = 0; i < node.names.size(); ++i)
    out.named.emplace_back(node.names[i], evaluate(*node.keywords[i], scope));
  context.place = node.place;
  return out;
}

Value Interpreter::filter(const Node &node, const Scope &scope,
                          const Value *input) {
  // Inside a filter or set block the innermost filter takes the block's text.
  const Value value = !node.kids[0] ? *input
                      : node.kids[0]->kind == NodeKind::Filter
                          ? filter(*node.kids[0], scope, input)
                          : evaluate(*node.kids[0], scope);
  return applyFilter(context, node.name, value, arguments(node, scope));
}

Value Interpreter::test(const Node &node, const Scope &scope) {
  const Value value = evaluate(*node.kids[0], scope);
  return Value(applyTest(context, node.name, value, arguments(node, scope)));
}

Value Interpreter::call(const Node &node, const Scope &scope,
                        const Value *caller) {
  const Value function = evaluate(*node.kids[0], scope);
  const Arguments given = arguments(node, scope);
  if (const auto *macro = function.as<Macro *>())
    return callMacro(**macro, given, caller);
  if (const auto *code = function.as<FunctionRef>())
    return callFunction(context, **code, given);
  if (const Undefined *undefined = function.as<Undefined>())
    context.fail(undefined->what ? *undefined->what
                                 : "the function is undefined");
  context.fail(std::string("'") + typeName(function) + "' cannot be called");
}

Value Interpreter::callMacro(const Macro &macro, const Arguments &given,
                             const Value *caller) {
  const Node &node = *macro.node;
  const std::string what = "macro '" + node.name + "'";
  Scope scope{{}, macro.scope};
  std::vector<bool> bound(node.names.size(), false);
  std::vector<Value> extra;
  std::vector<std::pair<Value, Value>> extraNamed;
  for (size_t i = 0; i < given.positional.size(); ++i) {
    if (i < node.names.size()) {
      scope.values[node.names[i]] = given.positional[i];
      bound[i] = true;
    } else {
      extra.push_back(given.positional[i]);
    }
  }
  if (!extra.empty() && !node.usesVarargs)
    context.fail(what + " expects at most " +
                 std::to_string(node.names.size()) + " arguments, but got " +
                 std::to_string(given.positional.size()));
  for (const auto &[name, value] : given.named) {
    const auto at = std::find(node.names.begin(), node.names.end(), name);
    if (at != node.names.end()) {
      const auto i = static_cast<size_t>(at - node.names.begin());
      if (bound[i])
        context.fail(what + " got two values for '" + name + "'");
      scope.values[name] = value;
      bound[i] = true;
    } else if (node.usesKwargs) {
      extraNamed.emplace_back(Value::text(name, true), value);
    } else {
      context.fail(what + " has no argument '" + name + "'");
    }
  }
  if (caller && !node.usesCaller)
    context.fail(what + " takes no call block: it does not use 'caller'");
  for (size_t i = 0; i < node.names.size(); ++i)
    if (!bound[i])
      scope.values[node.names[i]] =
          node.keywords[i] ? evaluate(*node.keywords[i], scope)
                           : Value::undefined("parameter '" + node.names[i] +
                                              "' was not provided");
  if (node.usesVarargs)
    scope.values["varargs"] = context.list(std::move(extra), true);
  if (node.usesKwargs)
    scope.values["kwargs"] = context.dict(std::move(extraNamed));
  if (node.usesCaller)
    scope.values["caller"] =
        caller ? *caller : Value::undefined("no caller defined");

  // A macro's body is its last kid: a call block's first is the call.
  return Value(capture(*node.kids.back(), scope));
}

} // namespace sprig::jinja
