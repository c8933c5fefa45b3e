// Logits of a model that many others are measured against, kept in files: computed once for all of them.
#ifndef SPRIG_TOOLS_EVAL_KEPTLOGITS_H
#define SPRIG_TOOLS_EVAL_KEPTLOGITS_H

#include "tools/Eval/Model.h"

namespace mlir::llm {

/// `model`, opened from `path` by `options`, with what its steps give in `folder`, which is made. A file is known by the
/// model's file (its path, size and time, not those of files that it names), by the precision, and by all tokens so far; one
/// of another size is made anew. Numbers are kept as they are: 4 bytes a logit in f32.
llvm::Expected<std::unique_ptr<EvalModel>> keepLogits(std::unique_ptr<EvalModel> model, llvm::StringRef path,
                                                      const OpenOptions &options, llvm::StringRef folder);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_EVAL_KEPTLOGITS_H
