// From the metadata of a GGUF file to a model's configuration.
#ifndef SPRIG_LIB_IMPORT_GGUFCONFIG_H
#define SPRIG_LIB_IMPORT_GGUFCONFIG_H

#include "lib/Import/Family.h"
#include "lib/Weights/GGUFFile.h"

namespace mlir::llm {

/// Errors: an architecture without a row in the table of families, a key that
/// is missing, of the wrong type or out of range, a feature that is not
/// supported, a key of the family that is not known. Each names file and key.
llvm::Expected<ModelConfig> readGGUFConfig(const GGUFFile &file);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_GGUFCONFIG_H
