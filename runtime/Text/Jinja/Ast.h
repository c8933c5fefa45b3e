//===- Ast.h - a parsed template -----------------------------------------===//
#pragma once

#include "runtime/Text/Jinja/Error.h"
#include "runtime/Text/Jinja/Value.h"

namespace sprig::jinja {

enum class NodeKind : uint8_t {
  // Expressions. "kids" are listed in order.
  Constant,    // value
  Name,        // name
  ListOf,      // items
  TupleOf,     // items
  DictOf,      // key, value, key, value, …
  Conditional, // condition, then, else (null: undefined)
  And,
  Or,
  Not,
  Negate,
  Plus,
  Binary,    // name is the operator
  Concat,    // operands of ~
  Compare,   // operands; names are the operators between them
  Attribute, // object; name
  Subscript, // object, key
  Slice,     // start, stop, step (each may be null)
  Call,      // function, arguments; names and keywords are the named ones
  Filter,    // input (null inside a filter or set block), arguments; name
  Test,      // input, arguments; name
  // Statements.
  Data,   // value
  Output, // expression
  Block,  // statements
  If,     // condition, body, condition, body, …; a last body alone is "else"
  For,    // target, list, condition (or null), body, else (or null)
  Set,    // target, expression
  SetBlock, // target, filter (or null), body
  MacroOf,  // body; name; names are the parameters, keywords their defaults (or
            // null)
  CallBlock,   // call, body; names and keywords as of MacroOf
  FilterBlock, // filter, body
  With,        // body, target, expression, target, expression, …
  Break,
  Continue,
};

/// One node. Nodes belong to the Tree's list, not to their parents, so that a
/// deep tree is destroyed without recursion.
struct Node {
  NodeKind kind = NodeKind::Constant;
  Place place;
  std::string name;
  Value value;
  std::vector<const Node *> kids;
  std::vector<std::string> names;
  std::vector<const Node *> keywords;
  bool usesVarargs = false, usesKwargs = false,
       usesCaller = false; // of a macro's body
};

struct Tree {
  std::vector<std::unique_ptr<Node>> nodes;
  const Node *root = nullptr;
};

} // namespace sprig::jinja
