//===- Parser.h - from tokens to a tree ----------------------------------===//
#pragma once

#include "runtime/Text/Jinja/Ast.h"
#include "runtime/Text/Jinja/Lexer.h"

namespace sprig::jinja {

/// Recursive descent over the grammar of Jinja 3, without what reads other
/// files (include, import, extends, block). Throws Error.
class Parser {
public:
  /// `maxDepth`: of expressions and blocks inside each other.
  Parser(std::vector<Token> tokens, uint32_t maxDepth)
      : tokens(std::move(tokens)), maxDepth(maxDepth) {}
  Tree parse();

private:
  // Parser.cpp: statements.
  const Node *block(std::initializer_list<std::string_view> ends);
  const Node *statement();
  const Node *ifStatement();
  const Node *forStatement();
  const Node *setStatement();
  const Node *macroStatement();
  const Node *callStatement();
  const Node *filterStatement();
  const Node *withStatement();
  void signature(Node &macro);
  void macroBody(Node &macro, std::string_view end);
  const Node *target(bool attributes);
  void endTag();

  // ParserExpressions.cpp.
  const Node *tuple(bool conditional = true, bool needed = false);
  const Node *expression(bool conditional = true);
  const Node *either();
  const Node *both();
  const Node *negation();
  const Node *comparison();
  const Node *sum();
  const Node *concatenation();
  const Node *product();
  const Node *power();
  const Node *unary(bool filters);
  const Node *primary();
  const Node *listLiteral();
  const Node *dictLiteral();
  const Node *postfix(const Node *node);
  const Node *subscript(const Node *object);
  const Node *filtersAndTests(const Node *node);
  const Node *filter(const Node *input);
  const Node *test(const Node *input);
  void arguments(Node &call);

  const Token &now() const { return tokens[at]; }
  const Token &ahead() const {
    return tokens[std::min(at + 1, tokens.size() - 1)];
  }
  Token take();
  bool takeOperator(std::string_view text);
  bool takeName(std::string_view text);
  void expectOperator(std::string_view text);
  std::string expectName(const char *what);
  [[noreturn]] void fail(std::string expected) const;
  Node &make(NodeKind kind);
  Node &make(NodeKind kind, Place place);

  /// Counts how deep the descent is.
  struct Deeper {
    explicit Deeper(Parser &parser);
    ~Deeper() { --parser.depth; }
    Parser &parser;
  };

  std::vector<Token> tokens;
  size_t at = 0;
  uint32_t depth = 0, maxDepth;
  uint32_t loops = 0; // around the present place, up to the macro
  std::vector<Node *> macros;
  Tree tree;
};

} // namespace sprig::jinja
