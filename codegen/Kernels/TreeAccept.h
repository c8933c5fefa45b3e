// tree_accept: walks from node 0 to the child that has the token drawn, until
// there is none; writes what was accepted, and the token drawn last, behind the
// prefix of the history, and advances the step block as a sampled token would.
// One invocation. kv_compact, which follows, reads the path from the block.
//
// Spec: {width = T, capacity = S}: T nodes at most, however many the step has.
// Bindings: control; history; drawn, the token drawn at each node [T].
//
// kv_compact: moves the keys and values of the accepted nodes behind the
// prefix. Spec: that of CacheLayers, and {width = T}. Bindings:
// control (as tree_accept left it); keys, values of the layers' caches, scales
// included.
#ifndef SPRIG_CODEGEN_KERNELS_TREEACCEPT_H
#define SPRIG_CODEGEN_KERNELS_TREEACCEPT_H

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct TreeAcceptSpec {
  static constexpr llvm::StringLiteral kFamily = "tree_accept";
  int64_t width = 0, capacity = 0;

  static FailureOr<TreeAcceptSpec> fromAttr(DictionaryAttr spec,
                                            EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

struct KvCompactSpec : CacheLayers {
  static constexpr llvm::StringLiteral kFamily = "kv_compact";
  int64_t width = 0;
  /// Of a cache of which a binding spans a part (KvFormat.h): workgroup z moves
  /// what lies behind a prefix that ends in part z.
  CacheParts cache;

  static FailureOr<KvCompactSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_TREEACCEPT_H
