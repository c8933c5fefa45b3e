// Functions of a module that guess what the model will say (llm-make-draft,
// llm-attach-heads).
#ifndef SPRIG_CODEGEN_LOWERING_DRAFTS_H
#define SPRIG_CODEGEN_LOWERING_DRAFTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::llm {

/// On such a function: {name, description, repeats, hidden?}.
inline constexpr StringLiteral kDraftAttr = "llm.draft";

/// On a function whose rows are the nodes of a tree: the draft that it is the
/// tree form of (llm-tree-verify).
inline constexpr StringLiteral kDraftTreeAttr = "llm.draft_tree";

/// In the order of the module; the number of a guess is its place.
SmallVector<func::FuncOp> draftsOf(ModuleOp module);

/// The tree forms of drafts.
SmallVector<func::FuncOp> draftTreesOf(ModuleOp module);

/// `plan.drafts`: {name, description, repeats, first, count} of each draft.
/// Errors are on the functions.
FailureOr<ArrayAttr> describeDrafts(ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_DRAFTS_H
