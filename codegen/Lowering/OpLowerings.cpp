#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {

static const llvm::StringMap<OpLowering> &table() {
  static const llvm::StringMap<OpLowering> rows = [] {
    llvm::StringMap<OpLowering> map;
    for (ArrayRef<OpLoweringRow> list :
         {appendLowerings(), attentionLowerings(), draftLowerings(),
          elementwiseLowerings(),
          embeddingLowerings(), evictLowerings(), expertLowerings(), headLowerings(),
          integerLowerings(),
          linearLowerings(), normLowerings(), treeLowerings()})
      for (const OpLoweringRow &row : list)
        map[row.name] = row.lowering;
    return map;
  }();
  return rows;
}

OpLowering findOpLowering(Operation *op) {
  return table().lookup(op->getName().getStringRef());
}

SmallVector<StringRef> loweredOps() {
  SmallVector<StringRef> names(table().keys());
  llvm::sort(names);
  return names;
}

} // namespace mlir::llm
