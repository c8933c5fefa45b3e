// Expressions, weakest binding first. The order is Jinja's, not Python's: "~"
// binds tighter than "+", and "**" groups from the left.
#include "runtime/Text/Jinja/Parser.h"

#include <algorithm>
#include <charconv>

namespace sprig::jinja {

/// "a, b" is a tuple, "a" is not, and nothing is the empty tuple if allowed.
const Node *Parser::tuple(bool conditional, bool emptyAllowed) {
  const Place place = now().place;
  std::vector<const Node *> items;
  bool comma = false;
  const auto ended = [&] {
    const TokenKind kind = now().kind;
    return kind == TokenKind::OutputEnd || kind == TokenKind::TagEnd ||
           now().isOperator(")");
  };
  while (!ended()) {
    items.push_back(expression(conditional));
    if (!takeOperator(","))
      break;
    comma = true;
  }
  if (items.size() == 1 && !comma)
    return items[0];
  if (items.empty() && !emptyAllowed)
    fail("an expression");
  Node &out = make(NodeKind::TupleOf, place);
  out.kids = std::move(items);
  return &out;
}

const Node *Parser::expression(bool conditional) {
  const Deeper deeper(*this);
  const Node *out = either();
  while (conditional && now().isName("if")) {
    Node &node = make(NodeKind::Conditional);
    take();
    const Node *condition = either();
    node.kids = {condition, out, takeName("else") ? expression() : nullptr};
    out = &node;
  }
  return out;
}

const Node *Parser::either() {
  const Node *out = both();
  while (now().isName("or")) {
    Node &node = make(NodeKind::Or);
    take();
    node.kids = {out, both()};
    out = &node;
  }
  return out;
}

const Node *Parser::both() {
  const Node *out = negation();
  while (now().isName("and")) {
    Node &node = make(NodeKind::And);
    take();
    node.kids = {out, negation()};
    out = &node;
  }
  return out;
}

const Node *Parser::negation() {
  if (!now().isName("not"))
    return comparison();
  const Deeper deeper(*this);
  Node &node = make(NodeKind::Not);
  take();
  node.kids = {negation()};
  return &node;
}

const Node *Parser::comparison() {
  const Place place = now().place;
  const Node *first = sum();
  Node *out = nullptr;
  while (true) {
    std::string op;
    for (const char *name : {"==", "!=", "<=", ">=", "<", ">"})
      if (now().isOperator(name))
        op = name;
    if (now().isName("in"))
      op = "in";
    if (now().isName("not") && ahead().isName("in")) {
      op = "not in";
      take();
    }
    if (op.empty())
      return out ? out : first;
    take();
    if (!out) {
      out = &make(NodeKind::Compare, place);
      out->kids = {first};
    }
    out->names.push_back(op);
    out->kids.push_back(sum());
  }
}

const Node *Parser::sum() {
  const Node *out = concatenation();
  while (now().isOperator("+") || now().isOperator("-")) {
    Node &node = make(NodeKind::Binary);
    node.name = take().text;
    node.kids = {out, concatenation()};
    out = &node;
  }
  return out;
}

const Node *Parser::concatenation() {
  const Node *first = product();
  if (!now().isOperator("~"))
    return first;
  Node &out = make(NodeKind::Concat);
  out.kids = {first};
  while (takeOperator("~"))
    out.kids.push_back(product());
  return &out;
}

const Node *Parser::product() {
  const Node *out = power();
  while (now().isOperator("*") || now().isOperator("/") ||
         now().isOperator("//") || now().isOperator("%")) {
    Node &node = make(NodeKind::Binary);
    node.name = take().text;
    node.kids = {out, power()};
    out = &node;
  }
  return out;
}

const Node *Parser::power() {
  const Node *out = unary(true);
  while (now().isOperator("**")) {
    Node &node = make(NodeKind::Binary);
    node.name = take().text;
    node.kids = {out, unary(true)};
    out = &node;
  }
  return out;
}

const Node *Parser::unary(bool filters) {
  const Deeper deeper(*this);
  const Node *out = nullptr;
  if (now().isOperator("-") || now().isOperator("+")) {
    Node &node = make(now().text == "-" ? NodeKind::Negate : NodeKind::Plus);
    take();
    node.kids = {unary(false)};
    out = &node;
  } else {
    out = primary();
  }
  out = postfix(out);
  return filters ? filtersAndTests(out) : out;
}

const Node *Parser::primary() {
  Node &out = make(NodeKind::Constant);
  const Token token = now();
  switch (token.kind) {
  case TokenKind::Name:
    take();
    if (token.text == "true" || token.text == "True" || token.text == "false" ||
        token.text == "False") {
      out.value = Value(token.text[0] == 't' || token.text[0] == 'T');
    } else if (token.text == "none" || token.text == "None") {
      out.value = Value::none();
    } else {
      out.kind = NodeKind::Name;
      out.name = token.text;
      if (!macros.empty()) {
        macros.back()->usesVarargs |= token.text == "varargs";
        macros.back()->usesKwargs |= token.text == "kwargs";
        macros.back()->usesCaller |= token.text == "caller";
      }
    }
    return &out;
  case TokenKind::String: {
    std::string text;
    while (now().kind == TokenKind::String) // neighbours are one string
      text += take().text;
    out.value = Value::text(text, true);
    return &out;
  }
  case TokenKind::Integer: {
    int64_t number = 0;
    const char *end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, number).ec != std::errc())
      fail("a number of at most 64 bits");
    out.value = Value(number);
    take();
    return &out;
  }
  case TokenKind::Float: {
    double number = 0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(),
                    number);
    out.value = Value(number);
    take();
    return &out;
  }
  default:
    break;
  }
  if (takeOperator("(")) {
    const Node *inner = tuple(true, true);
    expectOperator(")");
    return inner;
  }
  if (token.isOperator("["))
    return listLiteral();
  if (token.isOperator("{"))
    return dictLiteral();
  fail("an expression");
}

const Node *Parser::listLiteral() {
  Node &out = make(NodeKind::ListOf);
  take();
  while (!takeOperator("]")) {
    if (!out.kids.empty()) {
      expectOperator(",");
      if (takeOperator("]"))
        break;
    }
    out.kids.push_back(expression());
  }
  return &out;
}

const Node *Parser::dictLiteral() {
  Node &out = make(NodeKind::DictOf);
  take();
  while (!takeOperator("}")) {
    if (!out.kids.empty()) {
      expectOperator(",");
      if (takeOperator("}"))
        break;
    }
    out.kids.push_back(expression());
    expectOperator(":");
    out.kids.push_back(expression());
  }
  return &out;
}

const Node *Parser::postfix(const Node *node) {
  while (true) {
    if (now().isOperator(".")) {
      Node &out = make(NodeKind::Attribute);
      take();
      out.kids = {node};
      if (now().kind == TokenKind::Integer) { // items.0
        out.kind = NodeKind::Subscript;
        out.kids.push_back(primary());
      } else {
        out.name = expectName("the name of an attribute");
      }
      node = &out;
    } else if (now().isOperator("[")) {
      node = subscript(node);
    } else if (now().isOperator("(")) {
      Node &out = make(NodeKind::Call);
      out.kids = {node};
      arguments(out);
      node = &out;
    } else {
      return node;
    }
  }
}

const Node *Parser::subscript(const Node *object) {
  Node &out = make(NodeKind::Subscript);
  take();
  if (now().isOperator("]"))
    fail("an index");
  const Node *parts[3] = {nullptr, nullptr, nullptr};
  const Place place = now().place;
  size_t part = 0;
  while (!now().isOperator("]")) {
    if (takeOperator(":")) {
      if (++part > 2)
        fail("']'");
      continue;
    }
    if (parts[part])
      fail("']'");
    parts[part] = expression();
  }
  take();
  const Node *key = parts[0];
  if (part > 0) {
    Node &slice = make(NodeKind::Slice, place);
    slice.kids.assign(parts, parts + 3);
    key = &slice;
  }
  out.kids = {object, key};
  return &out;
}

const Node *Parser::filtersAndTests(const Node *node) {
  while (true) {
    if (takeOperator("|")) {
      node = filter(node);
    } else if (now().isName("is")) {
      node = test(node);
    } else if (now().isOperator("(")) {
      Node &out = make(NodeKind::Call);
      out.kids = {node};
      arguments(out);
      node = &out;
    } else {
      return node;
    }
  }
}

const Node *Parser::filter(const Node *input) {
  Node &out = make(NodeKind::Filter);
  out.name = expectName("the name of a filter");
  out.kids = {input};
  if (now().isOperator("("))
    arguments(out);
  return &out;
}

const Node *Parser::test(const Node *input) {
  Node &out = make(NodeKind::Test);
  take();
  const bool negated = takeName("not");
  out.name = expectName("the name of a test");
  out.kids = {input};
  const TokenKind kind = now().kind;
  const bool argument =
      kind == TokenKind::String || kind == TokenKind::Integer ||
      kind == TokenKind::Float || now().isOperator("[") ||
      now().isOperator("{") ||
      (kind == TokenKind::Name && !now().isName("else") &&
       !now().isName("or") && !now().isName("and") && !now().isName("if"));
  if (now().isOperator("("))
    arguments(out);
  else if (argument && now().isName("is"))
    fail("no second test of a test");
  else if (argument)
    out.kids.push_back(postfix(primary()));
  if (!negated)
    return &out;
  Node &node = make(NodeKind::Not, out.place);
  node.kids = {&out};
  return &node;
}

void Parser::arguments(Node &call) {
  expectOperator("(");
  bool first = true;
  while (!takeOperator(")")) {
    if (!first) {
      expectOperator(",");
      if (takeOperator(")"))
        return;
    }
    first = false;
    if (now().isOperator("*") || now().isOperator("**"))
      fail("an argument ('*' and '**' are not supported)");
    if (now().kind == TokenKind::Name && ahead().isOperator("=")) {
      call.names.push_back(take().text);
      take();
      call.keywords.push_back(expression());
    } else if (!call.names.empty()) {
      fail("a named argument after the first named one");
    } else {
      call.kids.push_back(expression());
    }
  }
}

} // namespace sprig::jinja
