//===- ModelText.h - the tokenizer of a package
//--------------------------------===//
#pragma once

#include "runtime/Package/Package.h"
#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/Tokenizer.h"

#include <mutex>
#include <optional>

namespace sprig {

/// Where each token of a package's tokenizer begins, and where the last ends.
std::vector<uint32_t> tokenOffsets(const format::Tokenizer &tokenizer);
/// Views of a package's tokenizer, and of its offsets.
TokenizerData tokenizerData(const format::Tokenizer &tokenizer,
                            std::span<const uint32_t> offsets);

/// The tokenizer of a package, made on first use: a program that is given token
/// ids never pays for it. Thread-safe.
class ModelText {
public:
  explicit ModelText(const Package &package) : package(package) {}

  /// Unsupported where the package has none, or one this runtime cannot read.
  Result<const Tokenizer *> tokenizer();
  /// Puts the begin token in front where the model's metadata asks for one.
  void addBegin(std::vector<uint32_t> &tokens);
  /// A conversation (JSON) through the package's chat template.
  Result<std::vector<uint32_t>> chat(const std::string &messages,
                                     const std::string &tools,
                                     bool addGenerationPrompt);

private:
  const Package &package;
  std::once_flag once, chatOnce;
  std::vector<uint32_t> offsets;
  std::optional<Result<Tokenizer>> made;
  std::optional<Result<ChatTemplate>> parsed;
};

} // namespace sprig
