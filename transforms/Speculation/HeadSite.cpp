#include "transforms/Speculation/HeadSite.h"

using namespace mlir;
using namespace mlir::llm;

FailureOr<HeadSite> HeadSite::of(func::FuncOp forward) {
  HeadSite site;
  site.forward = forward;
  auto layers = forward.getOps<LayerOp>();
  if (forward.getNumArguments() != 3 || forward.getNumResults() != 1 || layers.empty())
    return forward.emitOpError("expects (ids, positions, rows) -> logits with layers to put heads on, but got ")
           << forward.getFunctionType();
  site.embedded = (*layers.begin()).getInputs()[0];
  for (LayerOp layer : layers)
    site.hidden = layer.getOutputs()[0];
  site.logits = forward.getBody().front().getTerminator()->getOperand(0);
  Value at = site.logits;
  while (isa_and_present<SoftcapOp, ScaleOp>(at.getDefiningOp()))
    at = at.getDefiningOp()->getOperand(0);
  site.head = at.getDefiningOp<LinearOp>();
  auto type = dyn_cast<RankedTensorType>(site.hidden.getType());
  if (!site.head || !type || type.getRank() != 2 || site.head.getGamma())
    return forward.emitOpError("expects logits that are a product of the normed output of the last layer, before norms "
                               "are fused, to put heads on");
  return site;
}

func::FuncOp mlir::llm::cloneForEveryPosition(func::FuncOp forward) {
  auto every = cast<func::FuncOp>(forward->clone());
  SymbolTable(forward->getParentOp()).insert(every, std::next(forward->getIterator()));
  every.walk([](SelectRowsOp select) {
    select.getResult().replaceAllUsesWith(select.getInput());
    select.erase();
  });
  return every;
}
