//===- TokenStream.h - text while tokens arrive --------------------------===//
#pragma once

#include "runtime/Text/Tokenizer.h"

namespace sprig {

/// Turns tokens into text one at a time. What `push` returns is always whole
/// UTF-8 characters: one that is split over tokens is held back until its last
/// byte has come. Bytes that can be no character become U+FFFD. The texts
/// joined are the same as Tokenizer::decode of all tokens.
class TokenStream {
public:
  /// `tokenizer` must outlive the stream. For text that continues a prompt,
  /// options.start is false.
  explicit TokenStream(const Tokenizer &tokenizer,
                       DecodeOptions options = {.start = false})
      : tokenizer(&tokenizer), options(options) {}

  std::string push(uint32_t token);
  /// What is held back, as U+FFFD. The stream is then as new, in the middle of
  /// a text.
  std::string finish();

private:
  const Tokenizer *tokenizer;
  DecodeOptions options;
  std::string held; // at most 3 bytes between calls
};

} // namespace sprig
