//===- Pipeline.h - what a tokenizer.json does to text first -------------===//
//
// Hugging Face's `tokenizers` take text through a normaliser, which changes
// characters, and a pre-tokenizer, which cuts it into words that tokens never
// span. Both are trees of steps written in JSON; a package keeps them so. The
// order and the corners are those of the `tokenizers` package.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sprig {

/// Text in pieces: views of the text that was cut, or of `owned` where a step
/// changed it.
struct TextPieces {
  std::vector<std::string_view> list;
  std::deque<std::string> owned;
  bool atStart = false; // the first piece begins the whole input
};

/// Changes text.
class NormalizerStep {
public:
  virtual ~NormalizerStep() = default;
  virtual Status apply(std::string &text) const = 0;
};

/// Cuts pieces.
class SplitStep {
public:
  virtual ~SplitStep() = default;
  virtual Status apply(TextPieces &pieces) const = 0;
};

using NormalizerSteps = std::vector<std::unique_ptr<const NormalizerStep>>;
using SplitSteps = std::vector<std::unique_ptr<const SplitStep>>;

class Pipeline {
public:
  /// Of `{"normalizer": …, "pre_tokenizer": …}`, each null or as in a
  /// tokenizer.json. Unsupported names the step that is not known, Corrupt the
  /// member that is missing or of the wrong type.
  static Result<Pipeline> create(std::string_view json);

  Status normalize(std::string &text) const;

  /// Cuts normalised text, which must be valid UTF-8; `atStart`: it begins the
  /// whole input. Pieces may be empty.
  Status split(std::string_view text, bool atStart, TextPieces &pieces) const;

  /// Whether words are written in GPT-2's byte alphabet: byte-level BPE.
  bool byteLevel() const { return isByteLevel; }

private:
  NormalizerSteps normalizers;
  SplitSteps splits;
  bool isByteLevel = false;
};

/// `text` in GPT-2's byte alphabet (TokenizerBuilder.h has the way back).
std::string encodeByteLevel(std::string_view text);

} // namespace sprig
