// The normalisers of tokenizer.json files.
#include "runtime/Text/CharsMap.h"
#include "runtime/Text/Letters.h"
#include "runtime/Text/Normalizer.h"
#include "runtime/Text/PipelineJson.h"
#include "runtime/Text/Utf8.h"

#include <nlohmann/json.hpp>

namespace sprig {
namespace {

struct UnicodeForm final : NormalizerStep {
  UnicodeForm(bool compatible, bool composed)
      : compatible(compatible), composed(composed) {}
  Status apply(std::string &text) const override {
    text = toUnicodeForm(text, compatible, composed);
    return {};
  }
  bool compatible, composed;
};

struct Lowercase final : NormalizerStep {
  Status apply(std::string &text) const override {
    text = toLowercase(text);
    return {};
  }
};

struct StripAccents final : NormalizerStep {
  Status apply(std::string &text) const override {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const Utf8Char c = decodeUtf8(rest);
      if (!isMark(c.code))
        out += rest.substr(0, c.length);
      rest.remove_prefix(c.length);
    }
    text = std::move(out);
    return {};
  }
};

struct Strip final : NormalizerStep {
  Strip(bool left, bool right) : left(left), right(right) {}
  Status apply(std::string &text) const override {
    const std::string_view all = text;
    const size_t begin = left ? spacesAtStart(all) : 0;
    const std::string_view rest = all.substr(begin);
    text = std::string(
        rest.substr(0, rest.size() - (right ? spacesAtEnd(rest) : 0)));
    return {};
  }
  bool left, right;
};

struct Prepend final : NormalizerStep {
  explicit Prepend(std::string what) : what(std::move(what)) {}
  Status apply(std::string &text) const override {
    if (!text.empty())
      text.insert(0, what);
    return {};
  }
  std::string what;
};

struct Replace final : NormalizerStep {
  Replace(Regex pattern, std::string content)
      : pattern(std::move(pattern)), content(std::move(content)) {}
  Status apply(std::string &text) const override {
    std::string out;
    size_t done = 0;
    for (size_t at = 0; at <= text.size();) {
      TextSpan span;
      const Result<bool> found = pattern.find(text, at, span);
      if (!found.ok())
        return found.status();
      if (!*found)
        break;
      out.append(text, done, span.begin - done).append(content);
      done = span.end;
      at = span.end;
      if (span.begin == span.end) // nothing matched: on by one character
        at += std::max<size_t>(
            1, decodeUtf8(std::string_view(text).substr(at)).length);
    }
    text = out.append(text, done);
    return {};
  }
  Regex pattern;
  std::string content;
};

/// By SentencePiece's map. The `tokenizers` package looks short graphemes up, and
/// where one begins with a key takes what that becomes for all of it; then each
/// character by itself. SentencePiece takes the longest key at each place.
struct Precompiled final : NormalizerStep {
  Precompiled(CharsMap map, bool longest)
      : map(std::move(map)), longest(longest) {}
  Status apply(std::string &text) const override {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      size_t length = longest ? rest.size() : graphemeAtStart(rest);
      const std::string_view piece = rest.substr(0, length);
      if (longest || length < kLongGrapheme)
        if (const auto match = map.match(piece, longest)) {
          out += match->becomes;
          rest.remove_prefix(longest ? match->length : length);
          continue;
        }
      if (longest)
        length = decodeUtf8(rest).length;
      for (std::string_view letters = rest.substr(0, length);
           !letters.empty();) {
        const auto letter = letters.substr(0, decodeUtf8(letters).length);
        // In the other case it is known to be no key.
        const auto match = longest ? std::nullopt : map.match(letter, false);
        out += match ? match->becomes : letter;
        letters.remove_prefix(letter.size());
      }
      rest.remove_prefix(length);
    }
    text = std::move(out);
    return {};
  }
  static constexpr size_t kLongGrapheme = 6;
  CharsMap map;
  bool longest;
};

} // namespace

Status addNormalizer(const nlohmann::json &step, int depth,
                     NormalizerSteps &out) {
  if (step.is_null())
    return {};
  Status failure;
  const StepReader reader(step, failure);
  const std::string type = reader.type();
  std::unique_ptr<const NormalizerStep> made;
  if (type == "Sequence") {
    const nlohmann::json *steps = reader.member("normalizers");
    if (!steps || !steps->is_array() || depth == kDeepestStep)
      return reader.fail("normalizers", "expects a list, not too deep");
    for (const nlohmann::json &inner : *steps)
      if (Status s = addNormalizer(inner, depth + 1, out); !s)
        return s;
    return {};
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    made = std::make_unique<UnicodeForm>(type[2] == 'K', type.back() == 'C');
  } else if (type == "Lowercase") {
    made = std::make_unique<Lowercase>();
  } else if (type == "StripAccents") {
    made = std::make_unique<StripAccents>();
  } else if (type == "Strip") {
    made = std::make_unique<Strip>(reader.flag("strip_left", true),
                                   reader.flag("strip_right", true));
  } else if (type == "Prepend") {
    made = std::make_unique<Prepend>(reader.text("prepend"));
  } else if (type == "Replace") {
    Result<Regex> pattern = reader.pattern();
    if (!pattern.ok())
      return pattern.status();
    made =
        std::make_unique<Replace>(std::move(*pattern), reader.text("content"));
  } else if (type == "Precompiled") {
    const auto bytes = decodeBase64(reader.text("precompiled_charsmap"));
    if (!bytes)
      return reader.fail("precompiled_charsmap", "expects Base64");
    Result<CharsMap> map = CharsMap::create(*bytes);
    if (!map.ok())
      return map.status();
    made = std::make_unique<Precompiled>(std::move(*map),
                                         reader.flag("longest", false));
  } else {
    return {StatusCode::Unsupported,
            "tokenizer: expects a normalizer of type NFC, NFD, NFKC, NFKD, "
            "Lowercase, Precompiled, StripAccents, Strip, Prepend, Replace or "
            "Sequence, but got '" +
                type + "'"};
  }
  if (failure.ok())
    out.push_back(std::move(made));
  return failure;
}

} // namespace sprig
