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

/// A model with a head that has a layer of its own (heads.json, see generate_heads.py).
struct HeadCase {
  std::string name;
  std::vector<int32_t> tokens; ///< of a text
  size_t prompt;               ///< so many of them have been seen when the guesses begin
  /// After each of the tokens behind the prompt, the logits of a guess.
  std::vector<std::vector<double>> logits;
  bool apart; ///< the head is in a folder of its own
};
std::vector<HeadCase> headCases();
/// Writes the checkpoint to the folder `model`, and the head, where it is apart, to `head`; both are there.
llvm::Error writeHeadCase(llvm::StringRef name, llvm::StringRef model, llvm::StringRef head);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_GENERATEDCHECKPOINT_H
