// The tokenizer and the chat template in a GGUF file's metadata.
#ifndef SPRIG_LIB_IMPORT_GGUFTOKENIZER_H
#define SPRIG_LIB_IMPORT_GGUFTOKENIZER_H

#include "lib/Import/ModelTokenizer.h"
#include "lib/Weights/GGUFFile.h"

namespace mlir::llm {

/// What the file says, with tables that `sprig::Tokenizer` accepts; nothing
/// where the file has no vocabulary. Errors name the file and the key: one that
/// is missing or of the wrong type, lists of different lengths, an id out of
/// range, a kind of tokenizer or pre-tokenizer that is not supported.
llvm::Expected<std::optional<ModelTokenizer>>
readGGUFTokenizer(const GGUFFile &file);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_GGUFTOKENIZER_H
