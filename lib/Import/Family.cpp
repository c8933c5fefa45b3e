#include "lib/Import/Family.h"

using namespace mlir::llm;

// Granite is llama with factors on embedding, residual, attention and logits, which any file may state.
static constexpr Family kFamilies[] = {
    {"granite", /*interleavedPairs=*/true, ActivationKind::Silu},
    {"llama", /*interleavedPairs=*/true, ActivationKind::Silu},
};

llvm::ArrayRef<Family> mlir::llm::families() { return kFamilies; }

const Family *mlir::llm::findFamily(llvm::StringRef name) {
  for (const Family &family : kFamilies)
    if (family.name == name)
      return &family;
  return nullptr;
}
