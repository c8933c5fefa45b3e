// Folders of Hugging Face checkpoints: which of their files hold what.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINT_H
#define SPRIG_LIB_IMPORT_CHECKPOINT_H

#include "lib/Weights/WeightSource.h"

namespace mlir::llm {

/// The weights of a folder: `model.safetensors`, the files that
/// `model.safetensors.index.json` lists, or the only `.safetensors` file there.
/// Errors name the folder and what was looked for; weights that are only there
/// as PyTorch files are named.
llvm::Expected<std::unique_ptr<WeightSource>>
openCheckpointWeights(llvm::StringRef folder);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINT_H
