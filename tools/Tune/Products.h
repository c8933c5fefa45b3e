// The products that a tuning looks at.
#ifndef SPRIG_TOOLS_TUNE_PRODUCTS_H
#define SPRIG_TOOLS_TUNE_PRODUCTS_H

#include "codegen/Kernels/Linear.h"
#include <string>
#include <vector>

namespace mlir::llm {

/// What rules of a profile tell apart: products with equal facts have one
/// schedule.
struct Product {
  LinearSpec spec; ///< one of those with these facts; `tokens` is set apart

  /// "Q4_1 1536x576 gated": the spelling of --product, and of state files.
  std::string name() const;
  LinearSpec withTokens(int64_t tokens) const;
  /// The facts that a rule for this product asks for, but for `tokens`.
  ScheduleValues facts() const;
};

/// FORMAT:NxK or FORMAT:NxK:gated, e.g. Q4_1:1536x576:gated.
llvm::Expected<Product> parseProduct(StringRef text);

/// The products of a plan, each once, in the order in which they occur.
std::vector<Product> productsOf(ModuleOp plan);

/// Some shapes of models that people run: of 135 M, 1 B and 8 B parameters.
ArrayRef<StringRef> usualProducts();

} // namespace mlir::llm

#endif // SPRIG_TOOLS_TUNE_PRODUCTS_H
