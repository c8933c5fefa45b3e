// Frequencies of rotations, as tables are made of them.
#ifndef SPRIG_CODEGEN_LOWERING_ROPEFREQUENCIES_H
#define SPRIG_CODEGEN_LOWERING_ROPEFREQUENCIES_H

#include "dialects/LLM/LLM.h"
#include <cmath>

namespace mlir::llm {

/// Those of `op`, a rotation or an eviction that turns keys back, in radians a
/// position: one set, or that of positions from `long_from` on behind it.
template <typename OpT>
FailureOr<SmallVector<double>> frequenciesOf(OpT op, int64_t dims,
                                             int64_t sets) {
  double scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
  SmallVector<double> list;
  if (op.getBase()) {
    double base = op.getBase()->convertToDouble();
    for (int64_t i = 0; i < dims / 2; ++i)
      list.push_back(scale * std::pow(base, -2.0 * double(i) / double(dims)));
    return list;
  }
  auto weight = op.getFrequencies().template getDefiningOp<WeightOp>();
  auto values = weight && weight.isInline()
                    ? dyn_cast<DenseFPElementsAttr>(weight.getValueAttr())
                    : nullptr;
  if (!values)
    return op.emitOpError(
        "expects frequencies that are inline, but got others");
  for (const APFloat &value :
       llvm::make_range(values.template value_begin<APFloat>(),
                        std::next(values.template value_begin<APFloat>(),
                                  sets * (dims / 2))))
    list.push_back(scale * value.convertToDouble());
  return list;
}

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_ROPEFREQUENCIES_H
