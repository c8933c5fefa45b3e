// expert_linear: products with the weights of the experts that a token was sent
// to. Only their rows are read.
//
// Spec: {format, n, k, experts = X, top, each? = x has a row for each of the
// `top` experts of a token, combine? = the products of a token are summed, each
// times its weight, residual? is added (with combine), first?, of?: the kernel
// has the experts [first, first + X) of so many, and leaves the rows of y that
// are of others alone, or sums without them, stride?: n are rows of experts
// that have so many, and rows of y and the residual are as long}.
//
// Bindings, in this order: the planes of the weights, [X · n][k] in the layout
// tiled<rows=8>, named "weight.<plane>"; the format's table, if it has one; "x"
// f32 [T][k] or [T][top][k]; "ids" i32 [T][top]; "combine" f32 [T][top];
// "residual" f32 [T][n]; "y" f32 [T][top][n], combined [T][n]. Ids past the
// last expert read the last one.
//
// Experts may begin within a tile. A group works on eight rows for one token
// (and one expert unless combined); the order of additions depends on the
// format, n, k and the target alone.
#ifndef SPRIG_CODEGEN_KERNELS_EXPERTLINEAR_H
#define SPRIG_CODEGEN_KERNELS_EXPERTLINEAR_H

#include "codegen/Kernels/Registry.h"
#include "lib/Quant/Format.h"

namespace mlir::llm {

class KernelBuilder;

struct ExpertLinearSpec {
  static constexpr llvm::StringLiteral kFamily = "expert_linear";
  sprig::quant::Format format = sprig::quant::Format::F32;
  int64_t n = 0, k = 0, experts = 0, top = 1;
  bool each = false, combine = false, residual = false;
  int64_t first = 0, of = 0; ///< of 0: as many as `experts`
  int64_t stride = 0;        ///< 0: n

  int64_t rowLength() const { return stride ? stride : n; }

  static FailureOr<ExpertLinearSpec> fromAttr(DictionaryAttr spec,
                                              EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_EXPERTLINEAR_H
