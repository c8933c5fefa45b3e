#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/Text/Regex.h"

#include <pcre2.h>

namespace sprig {
namespace {

constexpr size_t kLongestPattern = 1 << 16;

Status failed(std::string_view what, int code) {
  PCRE2_UCHAR text[128] = {0};
  pcre2_get_error_message(code, text, sizeof(text));
  return {code == PCRE2_ERROR_NOMEMORY ? StatusCode::OutOfMemory
                                       : StatusCode::Unsupported,
          std::string(what) + ": " + reinterpret_cast<const char *>(text)};
}

/// What an escape of Oniguruma means as the inside of a class; null where PCRE2
/// means the same by it. PCRE2's \s also takes U+180E, its \w fewer marks and
/// more numbers, its \h another thing.
const char *classOfEscape(char letter) {
  switch (letter) {
  case 's':
    return "\\t-\\r\\x{85}\\p{Z}";
  case 'w':
    return "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";
  case 'h':
    return "0-9a-fA-F";
  default:
    return nullptr;
  }
}

/// One pass over a pattern of Oniguruma's, writing PCRE2's.
class Translation {
public:
  explicit Translation(std::string_view pattern) : pattern(pattern) {}

  Status run() {
    while (at < pattern.size()) {
      const char c = pattern[at];
      if (c == '\\') {
        if (Status s = escape(); !s)
          return s;
        continue;
      }
      if (!inClass) {
        if (c == '[') {
          inClass = true;
          take();
          for (const char first : {'^', ']'}) // a first ] is a letter
            if (at < pattern.size() && pattern[at] == first)
              take();
          continue;
        }
      } else if (c == ']') {
        inClass = false;
      } else if (pattern.substr(at).starts_with("[:")) {
        const size_t end = pattern.find(":]", at + 2);
        if (end == std::string_view::npos)
          return unsupported("a class within a class");
        out += pattern.substr(at, end + 2 - at);
        at = end + 2;
        continue;
      } else if (c == '[') {
        return unsupported("a class within a class");
      } else if (pattern.substr(at).starts_with("&&")) {
        return unsupported("an intersection of classes");
      }
      take();
    }
    return {};
  }

  std::string out;

private:
  void take() { out += pattern[at++]; }

  Status unsupported(std::string_view what) const {
    return {StatusCode::Unsupported,
            "pattern: " + std::string(what) + " at byte " + std::to_string(at) +
                " is not supported: " + std::string(pattern)};
  }

  Status escape() {
    if (at + 1 == pattern.size())
      return unsupported("a last backslash");
    const char letter = pattern[at + 1];
    const bool negated = letter == 'S' || letter == 'W' || letter == 'H';
    if (const char *inside =
            classOfEscape(negated ? char(letter - 'A' + 'a') : letter)) {
      if (negated && inClass && letter != 'S')
        return unsupported("a negated escape in a class");
      if (negated && inClass)
        out += "\\S";
      else
        out += inClass ? inside
                       : (negated ? "[^" : "[") + std::string(inside) + "]";
      at += 2;
      return {};
    }
    if (letter == 'u' && at + 6 <= pattern.size()) { // four digits
      out += "\\x{" + std::string(pattern.substr(at + 2, 4)) + "}";
      at += 6;
      return {};
    }
    take();
    take();
    return {};
  }

  std::string_view pattern;
  size_t at = 0;
  bool inClass = false;
};

} // namespace

void Regex::FreeCode::operator()(pcre2_real_code_8 *code) const {
  pcre2_code_free(code);
}

Result<Regex> Regex::compile(const std::string &pattern) {
  if (pattern.size() > kLongestPattern)
    return Status(StatusCode::Unsupported, "pattern: expects at most " +
                                               std::to_string(kLongestPattern) +
                                               " bytes, but got " +
                                               std::to_string(pattern.size()));
  int error = 0;
  PCRE2_SIZE where = 0;
  Regex out;
  // Single bytes of a character (\C) would break the texts apart.
  out.code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
      &where, nullptr));
  if (!out.code)
    return failed("pattern: byte " + std::to_string(where) + " of " + pattern,
                  error);
  // Where no executable memory is to be had, matching works without the
  // compiler, slower. Fuzzers, which make a pattern for each few bytes of text,
  // go without.
#ifndef SPRIG_REGEX_WITHOUT_JIT
  (void)pcre2_jit_compile(out.code.get(), PCRE2_JIT_COMPLETE);
#endif
  return out;
}

Result<Regex> Regex::compileOniguruma(std::string_view pattern) {
  Translation translation(pattern);
  if (Status s = translation.run(); !s)
    return s;
  return compile(translation.out);
}

Result<bool> Regex::find(std::string_view text, size_t from,
                         TextSpan &found) const {
  // One block a thread: a tokenizer matches once for each word.
  struct Free {
    void operator()(pcre2_match_data *data) const {
      pcre2_match_data_free(data);
    }
  };
  static thread_local std::unique_ptr<pcre2_match_data, Free> place(
      pcre2_match_data_create(1, nullptr));
  if (!place)
    return failed("pattern", PCRE2_ERROR_NOMEMORY);
  const auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  // The caller has checked the text; a check here would read the whole rest for
  // every word.
  const uint32_t options = PCRE2_NO_UTF_CHECK;
  int rc = pcre2_match(code.get(), subject, text.size(), from, options,
                       place.get(), nullptr);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its state on
                                        // the heap
    rc = pcre2_match(code.get(), subject, text.size(), from,
                     options | PCRE2_NO_JIT, place.get(), nullptr);
  if (rc == PCRE2_ERROR_NOMATCH)
    return false;
  if (rc < 0)
    return failed("pattern", rc);
  const PCRE2_SIZE *span = pcre2_get_ovector_pointer(place.get());
  // \K can put the beginning anywhere.
  if (span[0] < from || span[1] < span[0])
    return Status(StatusCode::Unsupported,
                  "pattern: expects matches in order, but \\K moved one");
  found = {span[0], span[1]};
  return true;
}

} // namespace sprig
