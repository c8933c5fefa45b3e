// The tokenizer and the chat template of a Hugging Face folder.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINTTOKENIZER_H
#define SPRIG_LIB_IMPORT_CHECKPOINTTOKENIZER_H

#include "lib/Import/ModelTokenizer.h"

namespace mlir::llm {

/// What `tokenizer.json`, or else SentencePiece's `tokenizer.model`, says, and
/// beside it tokenizer_config.json, generation_config.json and config.json (the
/// tokens that begin, end and pad) and the chat template; nothing where the
/// folder has neither. Errors name the file and the member.
llvm::Expected<std::optional<ModelTokenizer>>
readCheckpointTokenizer(llvm::StringRef folder);

/// The file that the tokenizer of a folder would be read from; empty where
/// there is none.
std::string findCheckpointTokenizer(llvm::StringRef folder);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINTTOKENIZER_H
