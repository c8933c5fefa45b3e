// The end of a `sample` program.
#include "codegen/Kernels/Sample.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {

LogicalResult lowerSampling(ProgramLowering &p, Operation *at, Value logits) {
  SampleSpec spec;
  spec.vocabulary = p.rowElements(logits);
  spec.capacity = p.target().capacity();
  return p.dispatch(at, SampleSpec::kFamily, spec.toAttr(p.context()),
                    {{"logits", p.view(logits)},
                     {"control", p.controlView()},
                     {"history", p.historyView()}},
                    1, "sample");
}

} // namespace mlir::llm
