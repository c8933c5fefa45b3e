//===- Regex.h - patterns, by PCRE2 --------------------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace sprig {

/// A place of a text.
struct TextSpan {
  size_t begin = 0, end = 0;
};

/// A compiled pattern; any number of threads may use one. PCRE2's limits on
/// backtracking and memory end what would not end by itself.
class Regex {
public:
  /// `pattern` as PCRE2 writes it. Unsupported, with the place, where it is
  /// none.
  static Result<Regex> compile(const std::string &pattern);

  /// `pattern` as tokenizer.json files write it (Oniguruma's syntax of Ruby):
  /// what has another meaning there is translated, what has none here is
  /// Unsupported.
  static Result<Regex> compileOniguruma(std::string_view pattern);

  /// Finds the first match that begins at `from` or later; false where there is
  /// none. `text` must be valid UTF-8.
  Result<bool> find(std::string_view text, size_t from, TextSpan &found) const;

private:
  struct FreeCode {
    void operator()(pcre2_real_code_8 *code) const;
  };
  std::unique_ptr<pcre2_real_code_8, FreeCode> code;
};

} // namespace sprig
