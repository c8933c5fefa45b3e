// From the config.json of a Hugging Face folder to a model's configuration.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINTCONFIG_H
#define SPRIG_LIB_IMPORT_CHECKPOINTCONFIG_H

#include "lib/Import/Family.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

struct CheckpointConfig {
  ModelConfig config;
  const Family *family = nullptr;
  /// The file says that it cannot tell the type of the numbers: a model that
  /// was cast as a whole, its rotations with it.
  bool castAsAWhole = false;
};

/// Reads the file at `path`, in the spelling of transformers 4 or 5. Errors: a
/// `model_type` without a row in the table of families, a key that is missing,
/// of the wrong type or out of range, a feature that is not supported, a key
/// that is not known. Each names file and key.
/// `others`: keys that do not concern the model, but may be there.
llvm::Expected<CheckpointConfig>
readCheckpointConfig(llvm::StringRef path,
                     llvm::ArrayRef<llvm::StringRef> others = {});

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINTCONFIG_H
