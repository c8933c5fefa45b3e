// Which tokens of a model stay: a file of ids, made whole by what these are merged from.
#ifndef SPRIG_TOOLS_VOCABULARYLIST_H
#define SPRIG_TOOLS_VOCABULARYLIST_H

#include "lib/Weights/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// Sets `keep` of the module's tokenizer to the ids in `file` (separated by commas or white space, as llm-tokenize
/// prints them), their ancestors, every byte and all control tokens. Errors are diagnostics of the module: no tokenizer,
/// a file that cannot be read or holds something else, an id that the vocabulary does not have.
LogicalResult keepTokensOf(ModuleOp module, StringRef file, WeightStore &weights);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_VOCABULARYLIST_H
