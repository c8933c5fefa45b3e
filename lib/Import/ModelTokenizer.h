// The tokenizer and the chat template that come with a model's weights.
#ifndef SPRIG_LIB_IMPORT_MODELTOKENIZER_H
#define SPRIG_LIB_IMPORT_MODELTOKENIZER_H

#include "lib/Weights/WeightSource.h"
#include "runtime/Text/TokenizerData.h"
#include <optional>

namespace mlir::llm {

struct ModelTokenizer {
  sprig::TokenizerTables tables; ///< that `sprig::Tokenizer` accepts
  std::string chatTemplate;      ///< empty where the model has none
};

/// Of a GGUF file, or of the Hugging Face folder that the weights lie in;
/// nothing where there is none.
llvm::Expected<std::optional<ModelTokenizer>>
readModelTokenizer(const WeightSource &source);

/// The same of a GGUF file or a folder at `path`, without its weights.
llvm::Expected<std::optional<ModelTokenizer>>
readModelTokenizer(llvm::StringRef path);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELTOKENIZER_H
