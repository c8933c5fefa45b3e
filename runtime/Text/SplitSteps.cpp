// The pre-tokenizers of tokenizer.json files.
#include "runtime/Text/PipelineJson.h"
#include "runtime/Text/TokenizerBuilder.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sprig {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

enum class Behaviour { Removed, Isolated, WithPrevious, WithNext, Contiguous };

/// A stretch of a piece, which the pattern matched or not.
struct Stretch {
  size_t begin, end;
  bool match;
};

struct Split final : SplitStep {
  Split(Regex pattern, Behaviour behaviour, bool invert)
      : pattern(std::move(pattern)), behaviour(behaviour), invert(invert) {}

  Status apply(TextPieces &pieces) const override {
    std::vector<std::string_view> out;
    std::vector<Stretch> stretches;
    for (const std::string_view piece : pieces.list) {
      stretches.clear();
      if (Status s = match(piece, stretches); !s)
        return s;
      join(stretches);
      for (const Stretch &s : stretches)
        if (s.end > s.begin && !(behaviour == Behaviour::Removed && s.match))
          out.push_back(piece.substr(s.begin, s.end - s.begin));
    }
    pieces.atStart &= !out.empty() && !pieces.list.empty() &&
                      out.front().data() == pieces.list.front().data();
    pieces.list = std::move(out);
    return {};
  }

private:
  /// Matches and what lies between. An empty match cuts, but not where a match
  /// has just ended.
  Status match(std::string_view piece, std::vector<Stretch> &out) const {
    size_t done = 0, lastEnd = std::string_view::npos;
    for (size_t at = 0; at <= piece.size();) {
      TextSpan span;
      const Result<bool> found = pattern.find(piece, at, span);
      if (!found.ok())
        return found.status();
      if (!*found)
        break;
      if (span.begin == span.end && span.end == lastEnd) {
        at += std::max<size_t>(1, decodeUtf8(piece.substr(at)).length);
        continue;
      }
      if (span.begin > done)
        out.push_back({done, span.begin, invert});
      out.push_back({span.begin, span.end, !invert});
      done = at = lastEnd = span.end;
    }
    if (done < piece.size())
      out.push_back({done, piece.size(), invert});
    return {};
  }

  void join(std::vector<Stretch> &stretches) const {
    std::vector<Stretch> out;
    switch (behaviour) {
    case Behaviour::Removed:
    case Behaviour::Isolated:
      return;
    case Behaviour::Contiguous:
      for (const Stretch &s : stretches)
        if (!out.empty() && out.back().match == s.match)
          out.back().end = s.end;
        else
          out.push_back(s);
      break;
    case Behaviour::WithPrevious: {
      bool before = false;
      for (const Stretch &s : stretches) {
        if (s.match && !before && !out.empty())
          out.back().end = s.end;
        else
          out.push_back(s);
        before = s.match;
      }
      break;
    }
    case Behaviour::WithNext: {
      bool behind = false;
      std::reverse(stretches.begin(), stretches.end());
      for (const Stretch &s : stretches) {
        if (s.match && !behind && !out.empty())
          out.back().begin = s.begin;
        else
          out.push_back(s);
        behind = s.match;
      }
      std::reverse(out.begin(), out.end());
      break;
    }
    }
    stretches = std::move(out);
  }

  Regex pattern;
  Behaviour behaviour;
  bool invert;
};

/// A space in front of each piece that has none.
struct AddSpace final : SplitStep {
  Status apply(TextPieces &pieces) const override {
    for (std::string_view &piece : pieces.list)
      if (!piece.starts_with(' '))
        piece = pieces.owned.emplace_back(" " + std::string(piece));
    return {};
  }
};

/// Into GPT-2's byte alphabet, or back: the steps behind ByteLevel see letters
/// of it.
struct ByteAlphabet final : SplitStep {
  explicit ByteAlphabet(bool back) : back(back) {}
  Status apply(TextPieces &pieces) const override {
    for (std::string_view &piece : pieces.list)
      piece = pieces.owned.emplace_back(back ? decodeByteLevel(piece)
                                             : encodeByteLevel(piece));
    return {};
  }
  bool back;
};

struct Metaspace final : SplitStep {
  Metaspace(std::string mark, std::string scheme)
      : mark(std::move(mark)), scheme(std::move(scheme)) {}
  Status apply(TextPieces &pieces) const override {
    for (size_t i = 0; i < pieces.list.size(); ++i) {
      std::string out;
      for (const char c : pieces.list[i])
        c == ' ' ? out += mark : out += c;
      const bool wanted =
          scheme == "always" || (scheme == "first" && i == 0 && pieces.atStart);
      if (wanted && !out.starts_with(mark))
        out.insert(0, mark);
      pieces.list[i] = pieces.owned.emplace_back(std::move(out));
    }
    return {};
  }
  std::string mark, scheme;
};

Status addSplit(Result<Regex> pattern, Behaviour behaviour, bool invert,
                SplitSteps &out) {
  if (!pattern.ok())
    return pattern.status();
  out.push_back(
      std::make_unique<Split>(std::move(*pattern), behaviour, invert));
  return {};
}

Status readBehaviour(const StepReader &reader, Behaviour &out) {
  constexpr std::pair<std::string_view, Behaviour> names[] = {
      {"Removed", Behaviour::Removed},
      {"Isolated", Behaviour::Isolated},
      {"MergedWithPrevious", Behaviour::WithPrevious},
      {"MergedWithNext", Behaviour::WithNext},
      {"Contiguous", Behaviour::Contiguous}};
  const std::string name = reader.text("behavior", "Isolated");
  for (const auto &[known, value] : names)
    if (name == known) {
      out = value;
      return {};
    }
  return reader.fail("behavior",
                     "expects Removed, Isolated, MergedWithPrevious, "
                     "MergedWithNext or Contiguous, but got '" +
                         name + "'");
}

Status addMetaspace(const StepReader &reader, SplitSteps &out) {
  const std::string mark = reader.text("replacement", "\xE2\x96\x81");
  const bool adds = reader.flag("add_prefix_space", true); // older files
  const std::string scheme =
      reader.text("prepend_scheme", adds ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return reader.fail("prepend_scheme",
                       "expects always, first or never, but got '" + scheme +
                           "'");
  out.push_back(std::make_unique<Metaspace>(mark, scheme));
  if (reader.flag("split", true))
    return addSplit(Regex::compile("\\Q" + mark + "\\E"), Behaviour::WithNext,
                    false, out);
  return {};
}

} // namespace

std::string encodeByteLevel(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const uint32_t byte = static_cast<uint8_t>(c);
    uint32_t code = byte;
    if (byte <= 0x20)
      code = 0x100 + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
      code = 0x121 + byte - 0x7F;
    else if (byte == 0xAD)
      code = 0x143;
    appendUtf8(out, code);
  }
  return out;
}

Status addPreTokenizer(const nlohmann::json &step, int depth, SplitSteps &out,
                       bool &byteLevel) {
  if (step.is_null())
    return {};
  Status failure;
  const StepReader reader(step, failure);
  const std::string type = reader.type();
  if (type == "Sequence") {
    const nlohmann::json *steps = reader.member("pretokenizers");
    if (!steps || !steps->is_array() || depth == kDeepestStep)
      return reader.fail("pretokenizers", "expects a list, not too deep");
    for (size_t i = 0; i < steps->size(); ++i) {
      const bool before = byteLevel;
      if (Status s = addPreTokenizer((*steps)[i], depth + 1, out, byteLevel);
          !s)
        return s;
      // What follows sees the byte alphabet; nothing may follow without need,
      // for it doubles the work.
      if (byteLevel && !before && i + 1 < steps->size()) {
        out.push_back(std::make_unique<ByteAlphabet>(false));
        for (++i; i < steps->size(); ++i) {
          bool again = false;
          if (Status s = addPreTokenizer((*steps)[i], depth + 1, out, again);
              !s)
            return s;
          if (again)
            return reader.fail("pretokenizers", "expects one ByteLevel");
        }
        out.push_back(std::make_unique<ByteAlphabet>(true));
      }
    }
    return {};
  }
  if (type == "ByteLevel") {
    if (byteLevel)
      return reader.fail("", "expects to stand once");
    byteLevel = true;
    if (reader.flag("add_prefix_space", true))
      out.push_back(std::make_unique<AddSpace>());
    if (reader.flag("use_regex", true))
      if (Status s = addSplit(Regex::compileOniguruma(kGpt2),
                              Behaviour::Isolated, false, out);
          !s)
        return s;
    return failure;
  }
  Behaviour behaviour = Behaviour::Isolated;
  if (type == "Split" || type == "Punctuation")
    if (Status s = readBehaviour(reader, behaviour); !s)
      return s;
  if (type == "Split") {
    const bool invert = reader.flag("invert", false);
    return failure.ok() ? addSplit(reader.pattern(), behaviour, invert, out)
                        : failure;
  }
  if (type == "Punctuation") // ASCII's symbols count
    return addSplit(Regex::compile("[\\p{P}$+<=>^`|~]"), behaviour, false, out);
  if (type == "Digits") {
    const bool single = reader.flag("individual_digits", false);
    return failure.ok()
               ? addSplit(Regex::compile(single ? "\\p{N}" : "\\p{N}+"),
                          behaviour, false, out)
               : failure;
  }
  if (type == "Whitespace")
    return addSplit(Regex::compileOniguruma("\\w+|[^\\w\\s]+"),
                    Behaviour::Removed, true, out);
  if (type == "WhitespaceSplit")
    return addSplit(Regex::compileOniguruma("\\s"), Behaviour::Removed, false,
                    out);
  if (type == "Metaspace") {
    Status s = addMetaspace(reader, out);
    return failure.ok() ? s : failure;
  }
  return {StatusCode::Unsupported,
          "tokenizer: expects a pre_tokenizer of type ByteLevel, Digits, "
          "Metaspace, Punctuation, Split, Whitespace, WhitespaceSplit or "
          "Sequence, but got '" +
              type + "'"};
}

} // namespace sprig
