//===- Generation.h - from a prompt to text
//-------------------------------------===//
#pragma once

#include "runtime/Speculation/Speculator.h"
#include "runtime/Session/StopStrings.h"
#include "runtime/Text/TokenStream.h"

#include <chrono>

namespace sprig {

enum class Finish { Running, Length, Stop, Context };

struct GenerationOptions {
  uint64_t most = 128;            ///< tokens
  bool ignoreEnd = false;         ///< end tokens do not end the text
  std::vector<std::string> stops; ///< strings that do
};

/// Wall-clock seconds.
struct GenerationTimes {
  double prefill = 0;     ///< from the start to the first token
  double decode = 0;      ///< from the first token to the last
  uint32_t prefilled = 0; ///< tokens of the prompt that were not cached yet
};

/// Generates one answer on a session, one token a call; the device works on the
/// next tokens while the caller shows one.
class Generation {
public:
  /// `tokenizer` may be null: then there is no text, and nothing but the number
  /// of tokens and the context ends the answer. `speculator`, of the session,
  /// may be null.
  Generation(Session &session, const Tokenizer *tokenizer,
             GenerationOptions options, Speculator *speculator = nullptr);

  /// Makes the session hold `prompt`, of which it computes only what it does
  /// not hold already, and starts.
  Status start(const std::vector<uint32_t> &prompt);

  /// One more token, and the text that became certain with it (whole UTF-8
  /// characters, never a part of a stop string). False at the end: `finish`
  /// says why, and `text` is what had been held back.
  Result<bool> next(uint32_t &token, std::string &text);
  /// Ends early; the caller has enough.
  Status stop();

  Finish finish() const { return why; }
  const std::vector<uint32_t> &tokens() const { return made; }
  const GenerationTimes &times() const { return spent; }

private:
  using Clock = std::chrono::steady_clock;
  Status end(Finish reason, std::string &text);

  Session &session;
  const Tokenizer *tokenizer;
  GenerationOptions options;
  Speculator *speculator;
  std::optional<TokenStream> stream;
  StopStrings stops;
  std::vector<uint32_t> made;
  Finish why = Finish::Running;
  bool ending = false; ///< the last token was given out, the rest was not
  Finish endReason = Finish::Running;
  GenerationTimes spent;
  Clock::time_point began, first;
};

} // namespace sprig
