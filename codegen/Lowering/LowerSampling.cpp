// The end of a `sample` program.
#include "codegen/Kernels/Sample.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {

int64_t drawableTokens(Operation *at, int64_t vocabulary) {
  auto model = at->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
      "llm.model");
  auto tokens = model ? model.getAs<IntegerAttr>("tokens") : IntegerAttr();
  return tokens && tokens.getInt() > 0 && tokens.getInt() < vocabulary
             ? tokens.getInt()
             : 0;
}

LogicalResult lowerSampling(ProgramLowering &p, Operation *at, Value logits) {
  SampleSpec spec;
  spec.vocabulary = p.rowElements(logits);
  spec.tokens = drawableTokens(at, spec.vocabulary);
  spec.capacity = p.target().capacity();
  return p.dispatch(at, SampleSpec::kFamily, spec.toAttr(p.context()),
                    {{"logits", p.view(logits)},
                     {"control", p.controlView()},
                     {"history", p.historyView()}},
                    1, "sample");
}

} // namespace mlir::llm
