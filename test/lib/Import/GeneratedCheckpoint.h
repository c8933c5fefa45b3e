// Checkpoints of variants.json: configurations and expected logits are stored, weights are computed, see
// generate_variants.py.
#ifndef SPRIG_TEST_LIB_IMPORT_GENERATEDCHECKPOINT_H
#define SPRIG_TEST_LIB_IMPORT_GENERATEDCHECKPOINT_H

#include "test/lib/Import/TinyCheckpoint.h"

namespace mlir::llm::testing {

/// The names of all variants, as long-lived strings.
const std::vector<std::string> &variantNames();

/// Writes config.json, model.safetensors and expected.json of a variant into a folder that is there.
llvm::Error writeVariant(llvm::StringRef name, llvm::StringRef folder);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_GENERATEDCHECKPOINT_H
