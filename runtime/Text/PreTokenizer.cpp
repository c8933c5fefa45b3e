#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/Text/PreTokenizer.h"

#include <pcre2.h>

// PCRE2's \s also takes U+180E, which other software does not: spaces are
// spelled out.
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define SPACES "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"

namespace sprig {
namespace {

// The patterns are those of the families' published tokenizer.json files; which
// GGUF name means which of them follows llama.cpp's list.
constexpr const char *kGpt2 =
    CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+|" SPACES;
constexpr const char *kLlama3 =
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^" SPACE
    "\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES;
constexpr const char *kQwen2 =
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" SPACE
    "\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES;
constexpr const char *kDigit = "\\p{N}";

const std::vector<PreTokenizerInfo> &table() {
  static const std::vector<PreTokenizerInfo> rows = [] {
    std::vector<PreTokenizerInfo> out = {
        {"default",
         "default",
         {"[\\p{P}$+<=>^~|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}},
        {"gpt-2", "gpt-2", {kGpt2}},
        {"llama3", "llama3", {kLlama3}, false, true},
        {"qwen2", "qwen2", {kQwen2}, true, false},
        {"smollm", "smollm", {kDigit, kGpt2}},
    };
    const std::pair<std::string_view, size_t> aliases[] = {
        {"mpt", 1},        {"olmo", 1},
        {"jais", 1},       {"llama-bpe", 2},
        {"llama-v3", 2},   {"falcon3", 2},
        {"stablelm2", 3},  {"deepseek-r1-qwen", 3},
        {"starcoder", 4},  {"refact", 4},
        {"codeshell", 4},  {"exaone", 4},
        {"minerva-7b", 4}, {"command-r", 4},
    };
    for (const auto &[name, row] : aliases) {
      out.push_back(out[row]);
      out.back().name = name;
    }
    return out;
  }();
  return rows;
}

Status failed(const char *what, int code) {
  PCRE2_UCHAR text[128] = {0};
  pcre2_get_error_message(code, text, sizeof(text));
  return {code == PCRE2_ERROR_NOMEMORY ? StatusCode::OutOfMemory
                                       : StatusCode::Unsupported,
          std::string(what) + ": " + reinterpret_cast<const char *>(text)};
}

} // namespace

const PreTokenizerInfo *findPreTokenizer(std::string_view name) {
  for (const PreTokenizerInfo &row : table())
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string preTokenizerNames() {
  std::string out;
  for (const PreTokenizerInfo &row : table())
    out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

void PreTokenizer::FreeCode::operator()(pcre2_real_code_8 *code) const {
  pcre2_code_free(code);
}

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  PreTokenizer out;
  out.info = findPreTokenizer(name);
  if (!out.info)
    return Status(StatusCode::Unsupported,
                  "tokenizer: expects one of the pre-tokenizers " +
                      preTokenizerNames() + ", but got '" + std::string(name) +
                      "'");
  for (const char *pattern : out.info->patterns) {
    int error = 0;
    PCRE2_SIZE where = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern),
                            PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                            &error, &where, nullptr));
    if (!code)
      return failed("pre-tokenizer pattern", error);
    // Where no executable memory is to be had, matching works without the
    // compiler, slower.
    (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    out.codes.push_back(std::move(code));
  }
  return out;
}

Status PreTokenizer::cut(const Code &code, std::string_view piece,
                         std::vector<std::string_view> &out) const {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data *)> found(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  if (!found)
    return failed("pre-tokenizer", PCRE2_ERROR_NOMEMORY);
  const auto *subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  size_t done = 0;
  while (done < piece.size()) {
    // The caller has checked the text; a check here would read the whole rest
    // for every word.
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc = pcre2_match(code.get(), subject, piece.size(), done, options,
                         found.get(), nullptr);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its state on
                                          // the heap
      rc = pcre2_match(code.get(), subject, piece.size(), done,
                       options | PCRE2_NO_JIT, found.get(), nullptr);
    if (rc == PCRE2_ERROR_NOMATCH)
      break;
    if (rc < 0)
      return failed("pre-tokenizer", rc);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(found.get());
    if (span[0] > done)
      out.push_back(piece.substr(done, span[0] - done));
    out.push_back(piece.substr(span[0], span[1] - span[0]));
    done = span[1];
  }
  if (done < piece.size())
    out.push_back(piece.substr(done));
  return {};
}

Status PreTokenizer::split(std::string_view text,
                           std::vector<std::string_view> &words) const {
  words.assign(text.empty() ? 0 : 1, text);
  std::vector<std::string_view> pieces;
  for (const Code &code : codes) {
    pieces.swap(words);
    words.clear();
    for (const std::string_view piece : pieces)
      if (Status s = cut(code, piece, words); !s)
        return s;
  }
  return {};
}

} // namespace sprig
