// embedding: the rows of a (quantised) table that the step's tokens name.
//
// Spec: {format = a name of lib/Quant/Format.h, rows = V, width = D, capacity =
// S, scale? = factor of every number, positions?: the tokens' positions name the
// rows, tree?: the tokens are nodes of a tree, positions go by depth, first?, table?: the kernel has the rows [first, first + V) of a table of
// so many and leaves the other tokens alone}. Bindings: the table's planes in
// the tiled layout; control; history (token ids by slot; none for positions); y
// f32 [T][D]. Ids past the table read its last row.
#ifndef SPRIG_CODEGEN_KERNELS_EMBEDDING_H
#define SPRIG_CODEGEN_KERNELS_EMBEDDING_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct EmbeddingSpec {
  static constexpr llvm::StringLiteral kFamily = "embedding";
  std::string format;
  int64_t rows = 0, width = 0, capacity = 0;
  double scale = 1;
  bool positions = false, tree = false;
  int64_t first = 0, table = 0; ///< table 0: as many as `rows`

  static FailureOr<EmbeddingSpec> fromAttr(DictionaryAttr spec,
                                           EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_EMBEDDING_H
