//===- Lexer.h - the words of a template ---------------------------------===//
#pragma once

#include "runtime/Text/Jinja/Error.h"

#include <string_view>
#include <vector>

namespace sprig::jinja {

enum class TokenKind : uint8_t {
  Data, // text outside tags
  OutputBegin,
  OutputEnd,
  TagBegin,
  TagEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text; // strings: with escapes resolved; numbers: without "_"
  Place place;

  bool is(TokenKind k, std::string_view t) const {
    return kind == k && text == t;
  }
  bool isOperator(std::string_view t) const {
    return is(TokenKind::Operator, t);
  }
  bool isName(std::string_view t) const { return is(TokenKind::Name, t); }
};

/// Cuts `source` into tokens, the last of which is End. White space follows
/// chat templates' settings: trim_blocks and lstrip_blocks are on, and one
/// newline at the end of the source goes. Throws Error.
std::vector<Token> lex(std::string_view source);

} // namespace sprig::jinja
