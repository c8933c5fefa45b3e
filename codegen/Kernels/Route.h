// route: the experts that each token goes to, and their weights, from the
// logits of a router.
//
// Spec: {experts = X, top, score = "softmax" | "sigmoid", normalise? = weights
// of the chosen add up to one, scale? = factor on the weights, bias? = f32 [X]
// is added to scores before they are compared, not to weights, groups? = equal
// groups of experts, of which only the top_groups with the largest sum of their
// two best (by_best?: with the best one) take part}. Bindings: x f32 [T][X];
// bias; ids i32 [T][top], best first, ties to the lower id; weights f32 [T][top].
#ifndef SPRIG_CODEGEN_KERNELS_ROUTE_H
#define SPRIG_CODEGEN_KERNELS_ROUTE_H

#include "codegen/Kernels/Registry.h"

namespace mlir::llm {

class KernelBuilder;

struct RouteSpec {
  static constexpr llvm::StringLiteral kFamily = "route";
  int64_t experts = 0, top = 1;
  std::string score = "softmax";
  bool normalise = false, bias = false;
  double scale = 0; ///< 0: 1
  int64_t groups = 0, topGroups = 0;
  bool byBest = false;

  static FailureOr<RouteSpec> fromAttr(DictionaryAttr spec,
                                       EmitError emitError);
  DictionaryAttr toAttr(MLIRContext *context) const;
  FailureOr<KernelInterface> interface(const TargetProfile &profile,
                                       EmitError emitError) const;
  void build(KernelBuilder &builder, const KernelInterface &interface) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ROUTE_H
