// What the tiny Hugging Face checkpoints of ../shared/reference/tiny should give, and checkpoints rewritten as GGUF files
// the way that converters do, so that an import of GGUF can be held against logits that other software computed.
#ifndef SPRIG_TEST_LIB_IMPORT_TINYCHECKPOINT_H
#define SPRIG_TEST_LIB_IMPORT_TINYCHECKPOINT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::llm::testing {

/// `expected.json` of a checkpoint.
struct ExpectedLogits {
  std::vector<int32_t> tokens;
  std::vector<double> first, last; ///< logits after the first and after the last token
  std::vector<int32_t> argmax;     ///< after each token
};

llvm::Expected<ExpectedLogits> readExpectedLogits(llvm::StringRef folder);

/// Writes the checkpoint in `folder` to a GGUF file: names, the order of Q and K rows, RoPE factors, gammas, experts
/// (GGUFTwin.cpp).
llvm::Error convertToGGUF(llvm::StringRef folder, llvm::StringRef path);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_TINYCHECKPOINT_H
