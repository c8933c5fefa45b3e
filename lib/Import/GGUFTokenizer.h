// The tokenizer and the chat template in a GGUF file's metadata.
#ifndef SPRIG_LIB_IMPORT_GGUFTOKENIZER_H
#define SPRIG_LIB_IMPORT_GGUFTOKENIZER_H

#include "lib/Weights/GGUFFile.h"
#include "runtime/Text/TokenizerData.h"

namespace mlir::llm {

struct GGUFTokenizer {
  sprig::TokenizerTables tables;
  std::string chatTemplate; ///< empty where the file has none
};

/// What the file says, with tables that `sprig::Tokenizer` accepts; nothing
/// where the file has no vocabulary. Errors name the file and the key: one that
/// is missing or of the wrong type, lists of different lengths, an id out of
/// range, a kind of tokenizer or pre-tokenizer that is not supported.
llvm::Expected<std::optional<GGUFTokenizer>>
readGGUFTokenizer(const GGUFFile &file);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_GGUFTOKENIZER_H
