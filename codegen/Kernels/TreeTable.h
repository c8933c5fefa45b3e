// tree_table: what the kernels of a `verify` program ask about the tree of
// draft tokens, from the parents in the step block. Parents that do not come
// before their children count as none.
//
// Spec: {width = T}. Bindings: control, which gets the depths of all nodes;
// tree, the nodes on each path as 32-bit words [T][T]: entry d of row i is the
// ancestor of node i at depth d, node i itself at its own depth. Rows at or
// past Count are like a lone node 0.
//
// The path says the same as the two words of llm.tree_mask (ancestors come in
// ascending order), in the form that keeps the order of plain decoding: a node
// reads the keys at positions base … base + depth from the slots of its path.
#ifndef SPRIG_CODEGEN_KERNELS_TREETABLE_H
#define SPRIG_CODEGEN_KERNELS_TREETABLE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

struct TreeTableSpec {
  static constexpr llvm::StringLiteral kFamily = "tree_table";
  int64_t width = 0;

  static FailureOr<TreeTableSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;

  static uint64_t bytes(int64_t width) { return uint64_t(width * width) * 4; }
};

/// Reads the table bound at `binding`.
class TreeTable {
public:
  TreeTable(KernelBuilder &builder, int64_t width, unsigned binding)
      : b(builder), width(width), binding(binding) {}

  /// The ancestor of `node` at `depth`.
  Value ancestor(Value node, Value depth) {
    Value place = b.add(b.mul(node, width), b.min(depth, b.index(width - 1)));
    return b.toIndex(b.load(binding, place));
  }
  /// The slot in which `node` finds what belongs to `position`.
  Value slot(Value node, Value position, Value base) {
    Value depth = b.sub(b.max(position, base), base);
    return b.select(b.less(position, base), position,
                    b.add(base, ancestor(node, depth)));
  }

private:
  KernelBuilder &b;
  int64_t width;
  unsigned binding;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_TREETABLE_H
