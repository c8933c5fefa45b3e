//===- TokenizerBuilder.h - from a model file's strings to tables --------===//
#pragma once

#include "runtime/Support/Status.h"
#include "runtime/Text/TokenizerData.h"

#include <optional>
#include <unordered_map>

namespace sprig {

/// The bytes behind a token written in GPT-2's byte alphabet (where a space is
/// "Ġ"). Characters outside the alphabet stand for themselves.
std::string decodeByteLevel(std::string_view text);

/// Whether chat models end a turn by a control token of this name. Files often
/// declare one of several.
bool isKnownEnd(std::string_view text);

/// `text` with real spaces where it has U+2581.
std::string replaceSpaceMarks(std::string_view text);

/// Fills TokenizerTables from tokens and merges as model files spell them:
/// GPT-2's byte alphabet, SentencePiece's U+2581 and "<0x0A>". Importers use
/// it; the runtime reads finished tables.
class TokenizerBuilder {
public:
  explicit TokenizerBuilder(TokenizerKind kind) { tables.kind = kind; }

  /// Appends a token; its id is the number of those before. `text` must live
  /// until `finish`.
  void addToken(std::string_view text, TokenType type,
                std::optional<float> score = {});

  /// Appends a merge, as "left right" or as a pair. Corrupt where a part is no
  /// token.
  Status addMerge(std::string_view merge);
  Status addMerge(std::string_view left, std::string_view right);

  /// The token spelled `text` in the file.
  std::optional<uint32_t> find(std::string_view text) const;

  /// Adds an end token, once.
  void addEnd(uint32_t token);
  /// Adds, as end tokens, the control tokens that isKnownEnd knows.
  void addKnownEnds();

  TokenizerTables tables; // everything else is set here directly

private:
  std::unordered_map<std::string_view, uint32_t> ids;
};

} // namespace sprig
