// The tokenizer that a module declares.
#ifndef SPRIG_LIB_IMPORT_MODULETOKENIZER_H
#define SPRIG_LIB_IMPORT_MODULETOKENIZER_H

#include "dialects/LLM/LLM.h"
#include "lib/Import/ModelTokenizer.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// The tokenizer in the file that `declaration` names, or beside it in a
/// Hugging Face folder; nothing where there is none. With `keep`, of these tokens
/// alone. Errors are diagnostics of the op.
FailureOr<std::optional<ModelTokenizer>> readTokenizer(TokenizerOp declaration,
                                                       WeightStore &files);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODULETOKENIZER_H
