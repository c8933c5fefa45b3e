//===- PreTokenizer.h - words of byte-level BPE --------------------------===//
//
// Byte-level BPE merges inside words only; what a word is differs by family. A
// pre-tokenizer is a row of a table: patterns applied one after another, each
// of which cuts the pieces of the one before into matches and what lies between
// them. No text is lost.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Text/Regex.h"

#include <vector>

namespace sprig {

/// A row of the table.
struct PreTokenizerInfo {
  std::string_view name;   // as in GGUF's tokenizer.ggml.pre
  std::string_view family; // the row that it is another name of
  std::vector<const char *> patterns;
  bool nfc = false; // text is brought to Unicode form C first
  bool ignoreMerges =
      false; // what importers set TokenizerData::ignoreMerges to
};

/// Null where no row has this name.
const PreTokenizerInfo *findPreTokenizer(std::string_view name);
/// "default, gpt-2, ...": for messages.
std::string preTokenizerNames();

class PreTokenizer {
public:
  /// Unsupported, with the names there are, where `name` is not one of them.
  static Result<PreTokenizer> create(std::string_view name);

  /// Cuts `text`, which must be valid UTF-8, into `words` (views of `text`).
  Status split(std::string_view text,
               std::vector<std::string_view> &words) const;

  bool nfc() const { return info->nfc; }

private:
  Status cut(const Regex &code, std::string_view piece,
             std::vector<std::string_view> &out) const;

  const PreTokenizerInfo *info = nullptr;
  std::vector<Regex> codes;
};

} // namespace sprig
