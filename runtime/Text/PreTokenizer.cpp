#include "runtime/Text/PreTokenizer.h"

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

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  PreTokenizer out;
  out.info = findPreTokenizer(name);
  if (!out.info)
    return Status(StatusCode::Unsupported,
                  "tokenizer: expects one of the pre-tokenizers " +
                      preTokenizerNames() + ", but got '" + std::string(name) +
                      "'");
  for (const char *pattern : out.info->patterns) {
    Result<Regex> code = Regex::compile(pattern);
    if (!code.ok())
      return code.status().within("pre-tokenizer");
    out.codes.push_back(std::move(*code));
  }
  return out;
}

Status PreTokenizer::cut(const Regex &code, std::string_view piece,
                         std::vector<std::string_view> &out) const {
  size_t done = 0;
  while (done < piece.size()) {
    TextSpan span; // no pattern of the table matches nothing
    const Result<bool> found = code.find(piece, done, span);
    if (!found.ok())
      return found.status().within("pre-tokenizer");
    if (!*found)
      break;
    if (span.begin > done)
      out.push_back(piece.substr(done, span.begin - done));
    out.push_back(piece.substr(span.begin, span.end - span.begin));
    done = span.end;
  }
  if (done < piece.size())
    out.push_back(piece.substr(done));
  return {};
}

Status PreTokenizer::split(std::string_view text,
                           std::vector<std::string_view> &words) const {
  words.assign(text.empty() ? 0 : 1, text);
  std::vector<std::string_view> pieces;
  for (const Regex &code : codes) {
    pieces.swap(words);
    words.clear();
    for (const std::string_view piece : pieces)
      if (Status s = cut(code, piece, words); !s)
        return s;
  }
  return {};
}

} // namespace sprig
