// Hugging Face's tokenizer.json.
#ifndef SPRIG_LIB_IMPORT_TOKENIZERJSON_H
#define SPRIG_LIB_IMPORT_TOKENIZERJSON_H

#include "runtime/Text/TokenizerData.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

/// The tables that `text` describes; end tokens and padding stand elsewhere and
/// are left empty. Errors say which member is missing, of the wrong type or of
/// a kind that is not supported; `path` is named in them.
llvm::Expected<sprig::TokenizerTables> readTokenizerJson(llvm::StringRef text,
                                                         llvm::StringRef path);

/// The same of SentencePiece's `tokenizer.model`.
llvm::Expected<sprig::TokenizerTables>
readSentencePieceModel(llvm::StringRef bytes, llvm::StringRef path);

/// The steps (runtime/Text/Pipeline.h) of a model with such a character map, for
/// tables whose `pre` is sprig::kSentenceMapName.
std::string sentenceMapPipeline(llvm::StringRef charsmap);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_TOKENIZERJSON_H
