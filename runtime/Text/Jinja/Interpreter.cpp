#include "runtime/Text/Jinja/Interpreter.h"
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Operators.h"

#include <utility>

namespace sprig::jinja {

MarkedText Interpreter::run(const Tree &tree) {
  MarkedText text;
  out = &text;
  execute(*tree.root, root);
  return text;
}

void Interpreter::write(const MarkedText &text) {
  if (out->size() + text.size() > context.limits.output)
    context.fail("expects at most " + std::to_string(context.limits.output) +
                 " bytes of output; the template writes more");
  out->append(text);
}

MarkedText Interpreter::capture(const Node &body, Scope &scope) {
  MarkedText text;
  MarkedText *outside = std::exchange(out, &text);
  execute(body, scope);
  out = outside;
  context.charge(text.size());
  return text;
}

Interpreter::Flow Interpreter::block(const Node &node, Scope &scope) {
  for (const Node *kid : node.kids)
    if (const Flow flow = execute(*kid, scope); flow != Flow::Next)
      return flow;
  return Flow::Next;
}

Interpreter::Flow Interpreter::execute(const Node &node, Scope &scope) {
  const Context::Deeper deeper(context);
  context.place = node.place;
  context.step();
  switch (node.kind) {
  case NodeKind::Block:
    return block(node, scope);
  case NodeKind::Data:
    write(*node.value.string());
    return Flow::Next;
  case NodeKind::Output:
    output(node, scope);
    return Flow::Next;
  case NodeKind::If:
    for (size_t i = 0; i + 1 < node.kids.size(); i += 2)
      if (truth(evaluate(*node.kids[i], scope)))
        return execute(*node.kids[i + 1], scope);
    return node.kids.size() % 2 ? execute(*node.kids.back(), scope)
                                : Flow::Next;
  case NodeKind::For:
    return loop(node, scope);
  case NodeKind::Set:
    assign(*node.kids[0], evaluate(*node.kids[1], scope), scope);
    return Flow::Next;
  case NodeKind::SetBlock: {
    Scope inner{{}, &scope};
    Value value = capture(*node.kids[2], inner);
    if (node.kids[1])
      value = filter(*node.kids[1], scope, &value);
    assign(*node.kids[0], std::move(value), scope);
    return Flow::Next;
  }
  case NodeKind::MacroOf:
    scope.values[node.name] = Value::Data(define(node, scope));
    return Flow::Next;
  case NodeKind::CallBlock:
    callBlock(node, scope);
    return Flow::Next;
  case NodeKind::FilterBlock: {
    Scope inner{{}, &scope};
    const Value value = capture(*node.kids[1], inner);
    write(toText(context, filter(*node.kids[0], scope, &value)));
    return Flow::Next;
  }
  case NodeKind::With: {
    Scope inner{{}, &scope};
    for (size_t i = 1; i + 1 < node.kids.size(); i += 2)
      assign(*node.kids[i], evaluate(*node.kids[i + 1], scope), inner);
    return execute(*node.kids[0], inner);
  }
  case NodeKind::Break:
    return Flow::Break;
  case NodeKind::Continue:
    return Flow::Continue;
  default:
    context.fail("expects a statement");
  }
}

void Interpreter::output(const Node &node, Scope &scope) {
  const Value value = evaluate(*node.kids[0], scope);
  context.place = node.place;
  if (value.string())
    write(*value.string());
  else
    write(toText(context, value));
}

void Interpreter::assign(const Node &target, Value value, Scope &scope) {
  context.place = target.place;
  if (target.kind == NodeKind::Name) {
    scope.values[target.name] = std::move(value);
    return;
  }
  if (target.kind == NodeKind::Attribute) {
    const Value object = evaluate(*target.kids[0], scope);
    context.place = target.place;
    const auto *space = object.as<Namespace *>();
    if (!space)
      context.fail("expects a namespace to set '" + target.name +
                   "' of, but got " + typeName(object));
    if ((*space)->values.size() >= 4096 &&
        !(*space)->values.contains(target.name))
      context.fail("expects at most 4096 names in a namespace");
    (*space)->values[target.name] = std::move(value);
    return;
  }
  const ListRef items = iterate(context, value);
  if (items->items.size() != target.kids.size())
    context.fail("expects " + std::to_string(target.kids.size()) +
                 " values to unpack, but got " +
                 std::to_string(items->items.size()));
  for (size_t i = 0; i < target.kids.size(); ++i)
    assign(*target.kids[i], items->items[i], scope);
}

Interpreter::Flow Interpreter::loop(const Node &node, Scope &scope) {
  const Node &target = *node.kids[0], &body = *node.kids[3];
  const Node *condition = node.kids[2], *otherwise = node.kids[4];
  const Value over = evaluate(*node.kids[1], scope);
  context.place = node.place;
  ListRef items = iterate(context, over);
  if (condition) { // loop.length and the like count what passes
    std::vector<Value> passing;
    for (const Value &item : items->items) {
      Scope inner{{}, &scope};
      assign(target, item, inner);
      if (truth(evaluate(*condition, inner)))
        passing.push_back(item);
    }
    context.place = node.place;
    items = *context.list(std::move(passing)).as<ListRef>();
  }
  if (items->items.empty()) {
    Scope inner{{}, &scope};
    return otherwise ? execute(*otherwise, inner) : Flow::Next;
  }

  Loop *state = context.makeLoop();
  state->items = items;
  for (size_t i = 0; i < items->items.size(); ++i) {
    context.step();
    state->index = i;
    Scope inner{{}, &scope};
    inner.values["loop"] = Value::Data(state);
    assign(target, items->items[i], inner);
    if (execute(body, inner) == Flow::Break)
      break;
  }
  return Flow::Next;
}

Macro *Interpreter::define(const Node &node, Scope &scope) {
  Macro *macro = context.makeMacro();
  macro->node = &node;
  macro->scope = &root;
  // Names of the outermost scope are looked up when the macro is called; an
  // inner scope may be gone by then, so its names are taken along.
  for (const Scope *s = &scope; s && s != &root; s = s->outer) {
    context.charge(s->values.size() * 128);
    for (const auto &[name, value] : s->values)
      macro->captured.values.emplace(name, value);
  }
  macro->captured.outer = &root;
  if (!macro->captured.values.empty())
    macro->scope = &macro->captured;
  return macro;
}

void Interpreter::callBlock(const Node &node, Scope &scope) {
  const Value caller = Value::Data(define(node, scope));
  const Value value = call(*node.kids[0], scope, &caller);
  context.place = node.place;
  write(toText(context, value));
}

} // namespace sprig::jinja
