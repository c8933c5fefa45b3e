#include "runtime/Text/Jinja/Parser.h"

#include <algorithm>
#include <utility>

namespace sprig::jinja {
namespace {

std::string describe(const Token &token) {
  switch (token.kind) {
  case TokenKind::End:
    return "the end of the template";
  case TokenKind::Data:
    return "text";
  case TokenKind::OutputBegin:
    return "'{{'";
  case TokenKind::OutputEnd:
    return "'}}'";
  case TokenKind::TagBegin:
    return "'{%'";
  case TokenKind::TagEnd:
    return "'%}'";
  case TokenKind::String:
    return "a string";
  default:
    return "'" + token.text + "'";
  }
}

} // namespace

Parser::Deeper::Deeper(Parser &parser) : parser(parser) {
  if (++parser.depth > parser.maxDepth) {
    --parser.depth; // no destructor runs for a constructor that throws
    throw Error{"expects at most " + std::to_string(parser.maxDepth) +
                    " expressions and blocks inside each other",
                parser.now().place};
  }
}

void Parser::fail(std::string expected) const {
  throw Error{"expects " + expected + ", but got " + describe(now()),
              now().place};
}

Token Parser::take() {
  Token token = now();
  if (at + 1 < tokens.size())
    ++at;
  return token;
}

bool Parser::takeOperator(std::string_view text) {
  const bool is = now().isOperator(text);
  if (is)
    take();
  return is;
}

bool Parser::takeName(std::string_view text) {
  const bool is = now().isName(text);
  if (is)
    take();
  return is;
}

void Parser::expectOperator(std::string_view text) {
  if (!takeOperator(text))
    fail("'" + std::string(text) + "'");
}

std::string Parser::expectName(const char *what) {
  if (now().kind != TokenKind::Name)
    fail(what);
  return take().text;
}

Node &Parser::make(NodeKind kind, Place place) {
  tree.nodes.push_back(std::make_unique<Node>());
  Node &node = *tree.nodes.back();
  node.kind = kind;
  node.place = place;
  return node;
}

Node &Parser::make(NodeKind kind) { return make(kind, now().place); }

Tree Parser::parse() {
  tree.root = block({});
  return std::move(tree);
}

void Parser::endTag() {
  if (now().kind != TokenKind::TagEnd)
    fail("'%}'");
  take();
}

/// Statements up to a tag named in `ends`, of which "{%" is taken and the name
/// is not; without `ends`, up to the end of the template.
const Node *Parser::block(std::initializer_list<std::string_view> ends) {
  const Deeper deeper(*this);
  Node &out = make(NodeKind::Block);
  while (true) {
    switch (now().kind) {
    case TokenKind::Data: {
      Node &data = make(NodeKind::Data);
      data.value = Value::text(take().text, true);
      out.kids.push_back(&data);
      break;
    }
    case TokenKind::OutputBegin: {
      Node &output = make(NodeKind::Output);
      take();
      output.kids = {tuple()};
      if (now().kind != TokenKind::OutputEnd)
        fail("'}}'");
      take();
      out.kids.push_back(&output);
      break;
    }
    case TokenKind::TagBegin:
      take();
      if (now().kind == TokenKind::Name &&
          std::find(ends.begin(), ends.end(), now().text) != ends.end())
        return &out;
      out.kids.push_back(statement());
      break;
    default:
      if (now().kind == TokenKind::End && ends.size() == 0)
        return &out;
      fail("'{% " +
           std::string(ends.size() ? std::data(ends)[ends.size() - 1] : "end") +
           " %}'");
    }
  }
}

const Node *Parser::statement() {
  const std::string name = now().kind == TokenKind::Name ? now().text : "";
  if (name == "if")
    return ifStatement();
  if (name == "for")
    return forStatement();
  if (name == "set")
    return setStatement();
  if (name == "macro")
    return macroStatement();
  if (name == "call")
    return callStatement();
  if (name == "filter")
    return filterStatement();
  if (name == "with")
    return withStatement();
  if (name == "break" || name == "continue") {
    if (loops == 0)
      fail("'" + name + "' inside a loop only");
    Node &out = make(name == "break" ? NodeKind::Break : NodeKind::Continue);
    take();
    endTag();
    return &out;
  }
  if (name ==
      "generation") { // marks what the assistant wrote; training uses it
    take();
    endTag();
    const Node *body = block({"endgeneration"});
    take();
    endTag();
    return body;
  }
  for (const char *other :
       {"include", "import", "from", "extends", "block", "do", "autoescape"})
    if (name == other)
      throw Error{"the tag '" + name + "' is not supported in chat templates",
                  now().place};
  fail("a tag");
}

const Node *Parser::ifStatement() {
  Node &out = make(NodeKind::If);
  while (true) {
    take(); // if, elif
    out.kids.push_back(tuple(false));
    endTag();
    out.kids.push_back(block({"elif", "else", "endif"}));
    if (now().isName("elif"))
      continue;
    if (takeName("else")) {
      endTag();
      out.kids.push_back(block({"endif"}));
    }
    take();
    endTag();
    return &out;
  }
}

const Node *Parser::forStatement() {
  Node &out = make(NodeKind::For);
  take();
  out.kids.push_back(target(false));
  if (!takeName("in"))
    fail("'in'");
  out.kids.push_back(tuple(false));
  out.kids.push_back(takeName("if") ? expression() : nullptr);
  if (now().isName("recursive"))
    throw Error{"recursive loops are not supported", now().place};
  endTag();
  ++loops;
  out.kids.push_back(block({"else", "endfor"}));
  --loops;
  out.kids.push_back(nullptr);
  if (takeName("else")) {
    endTag();
    out.kids.back() = block({"endfor"});
  }
  take();
  endTag();
  return &out;
}

/// A name, a tuple of names, or (with `attributes`) an attribute of a
/// namespace.
const Node *Parser::target(bool attributes) {
  Node &first = make(NodeKind::Name);
  const bool brackets = takeOperator("(");
  first.name = expectName("the name of a variable");
  if (attributes && !brackets && takeOperator(".")) {
    Node &out = make(NodeKind::Attribute, first.place);
    out.kids = {&first};
    out.name = expectName("the name of an attribute");
    return &out;
  }
  if (!brackets && !now().isOperator(","))
    return &first;
  Node &out = make(NodeKind::TupleOf, first.place);
  out.kids.push_back(&first);
  while (takeOperator(",") && now().kind == TokenKind::Name &&
         !now().isName("in")) {
    Node &next = make(NodeKind::Name);
    next.name = take().text;
    out.kids.push_back(&next);
  }
  if (brackets)
    expectOperator(")");
  return &out;
}

const Node *Parser::setStatement() {
  const Place place = now().place;
  take();
  const Node *to = target(true);
  if (takeOperator("=")) {
    Node &out = make(NodeKind::Set, place);
    out.kids = {to, tuple()};
    endTag();
    return &out;
  }
  Node &out = make(NodeKind::SetBlock, place);
  const Node *through = nullptr;
  while (takeOperator("|"))
    through = filter(through);
  endTag();
  out.kids = {to, through, block({"endset"})};
  take();
  endTag();
  return &out;
}

void Parser::signature(Node &macro) {
  expectOperator("(");
  while (!takeOperator(")")) {
    if (!macro.names.empty())
      expectOperator(",");
    macro.names.push_back(expectName("the name of a parameter"));
    macro.keywords.push_back(takeOperator("=") ? expression() : nullptr);
    if (!macro.keywords.back() && macro.keywords.size() > 1 &&
        macro.keywords[macro.keywords.size() - 2])
      fail("a default, as the parameters before have one");
  }
}

void Parser::macroBody(Node &macro, std::string_view end) {
  endTag();
  const uint32_t outside = std::exchange(loops, 0);
  macros.push_back(&macro);
  macro.kids.push_back(block({end}));
  macros.pop_back();
  loops = outside;
  take();
  endTag();
}

const Node *Parser::macroStatement() {
  Node &out = make(NodeKind::MacroOf);
  take();
  out.name = expectName("the name of the macro");
  signature(out);
  macroBody(out, "endmacro");
  return &out;
}

const Node *Parser::callStatement() {
  Node &out = make(NodeKind::CallBlock);
  take();
  out.name = "caller";
  if (now().isOperator("("))
    signature(out);
  out.kids.push_back(unary(true));
  if (out.kids[0]->kind != NodeKind::Call)
    throw Error{"expects a call in the call block", out.kids[0]->place};
  macroBody(out, "endcall");
  return &out;
}

const Node *Parser::filterStatement() {
  Node &out = make(NodeKind::FilterBlock);
  take();
  const Node *through = filter(nullptr);
  while (takeOperator("|"))
    through = filter(through);
  endTag();
  out.kids = {through, block({"endfilter"})};
  take();
  endTag();
  return &out;
}

const Node *Parser::withStatement() {
  Node &out = make(NodeKind::With);
  take();
  out.kids.push_back(nullptr);
  while (now().kind != TokenKind::TagEnd) {
    if (out.kids.size() > 1)
      expectOperator(",");
    out.kids.push_back(target(false));
    expectOperator("=");
    out.kids.push_back(expression());
  }
  endTag();
  out.kids[0] = block({"endwith"});
  take();
  endTag();
  return &out;
}

} // namespace sprig::jinja
