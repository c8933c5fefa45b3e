// The tokenizer that a module declares.
#ifndef SPRIG_LIB_IMPORT_MODULETOKENIZER_H
#define SPRIG_LIB_IMPORT_MODULETOKENIZER_H

#include "dialects/LLM/LLM.h"
#include "lib/Import/GGUFTokenizer.h"
#include "lib/Weights/WeightStore.h"

namespace mlir::llm {

/// The tokenizer in the file that `declaration` names, or nothing where that
/// file has no vocabulary. Errors are diagnostics of the op.
FailureOr<std::optional<GGUFTokenizer>>
readTokenizer(TokenizerOp declaration, WeightStore &files);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODULETOKENIZER_H
