#include "dialects/LLM/InlineValues.h"

using namespace mlir;
using namespace mlir::llm;

ElementsAttr llm::getInlineValue(Value value) {
  auto weight = value ? value.getDefiningOp<WeightOp>() : WeightOp();
  if (!weight || !weight.isInline() || isQuantized(weight.getType()))
    return {};
  return weight.getValueAttr();
}

bool llm::isInlineSplat(Value value, double number) {
  auto elements =
      dyn_cast_if_present<DenseFPElementsAttr>(getInlineValue(value));
  return elements &&
         llvm::all_of(elements.getValues<APFloat>(), [&](APFloat element) {
           bool inexact;
           element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                           &inexact);
           return element.convertToDouble() == number;
         });
}

bool llm::isInlineIota(Value value) {
  auto elements =
      dyn_cast_if_present<DenseIntElementsAttr>(getInlineValue(value));
  if (!elements)
    return false;
  for (auto [i, element] : llvm::enumerate(elements.getValues<APInt>()))
    if (element.getSExtValue() != static_cast<int64_t>(i))
      return false;
  return true;
}
