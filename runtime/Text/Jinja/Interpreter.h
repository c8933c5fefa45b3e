//===- Interpreter.h - runs a parsed template ----------------------------===//
#pragma once

#include "runtime/Text/Jinja/Context.h"

namespace sprig::jinja {

/// Walks the tree. Throws Error.
class Interpreter {
public:
  Interpreter(Context &context, Scope &globals) : context(context) {
    root.outer = &globals;
  }

  /// The text that the template makes.
  MarkedText run(const Tree &tree);

private:
  enum class Flow { Next, Break, Continue };

  // Interpreter.cpp: statements.
  Flow execute(const Node &node, Scope &scope);
  Flow block(const Node &node, Scope &scope);
  Flow loop(const Node &node, Scope &scope);
  void output(const Node &node, Scope &scope);
  void assign(const Node &target, Value value, Scope &scope);
  void callBlock(const Node &node, Scope &scope);
  /// The text that `body` writes.
  MarkedText capture(const Node &body, Scope &scope);
  void write(const MarkedText &text);
  Macro *define(const Node &node, Scope &scope);

  // Evaluate.cpp: expressions.
  Value evaluate(const Node &node, const Scope &scope);
  Value compare(const Node &node, const Scope &scope);
  Value subscript(const Node &node, const Scope &scope);
  Value call(const Node &node, const Scope &scope,
             const Value *caller = nullptr);
  Value callMacro(const Macro &macro, const Arguments &arguments,
                  const Value *caller);
  Value filter(const Node &node, const Scope &scope, const Value *input);
  Value test(const Node &node, const Scope &scope);
  Arguments arguments(const Node &node, const Scope &scope);

  Context &context;
  Scope root;
  MarkedText *out = nullptr;
};

} // namespace sprig::jinja
