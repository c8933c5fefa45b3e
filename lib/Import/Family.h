// The table of model families.
//
// Families share one configuration (ModelConfig), one list of tensors (ModelWeights) and one builder (GraphBuilder);
// what sets a family apart is a row here. What a file's metadata can say is not in the table: it is read for every
// family alike.
#ifndef SPRIG_LIB_IMPORT_FAMILY_H
#define SPRIG_LIB_IMPORT_FAMILY_H

#include "lib/Import/ModelConfig.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::llm {

struct Family {
  /// `general.architecture` of GGUF, and the prefix of its keys.
  llvm::StringLiteral name;
  /// Which components of a head turn together. GGUF files of llama-like families hold the rows of Q and K in an order
  /// in which these lie side by side.
  bool interleavedPairs;
  ActivationKind activation;
};

llvm::ArrayRef<Family> families();

/// The row of that name, or null.
const Family *findFamily(llvm::StringRef name);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_FAMILY_H
