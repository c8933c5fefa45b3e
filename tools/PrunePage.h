// A page that shows what pruning took from each layer, and what it cost there.
#ifndef SPRIG_TOOLS_PRUNEPAGE_H
#define SPRIG_TOOLS_PRUNEPAGE_H

#include "transforms/Prune/PruneReport.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

/// Self-contained HTML: for each pass a chart of what was lost by layer, before and after the fit, and a table.
::llvm::Error writePrunePage(const PruneReport &report, ::llvm::StringRef model, ::llvm::StringRef path);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_PRUNEPAGE_H
