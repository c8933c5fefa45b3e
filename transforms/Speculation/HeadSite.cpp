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

HeadCopier::HeadCopier(OpBuilder &builder, const HeadSite &site, func::FuncOp function) : builder(builder) {
  func::FuncOp forward = site.forward;
  for (auto [old, fresh] : llvm::zip(forward.getArguments(), function.getArguments()))
    mapping.map(old, fresh);
}

Value HeadCopier::copy(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast<SelectRowsOp>(op)) {
    mapping.map(value, copy(select.getInput()));
    return mapping.lookup(value);
  }
  for (Value operand : op->getOperands())
    copy(operand);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

func::FuncOp mlir::llm::beginGuess(const HeadSite &site, unsigned number, StringRef description, bool repeats, bool own,
                                   TypeRange results) {
  func::FuncOp forward = site.forward;
  OpBuilder builder(forward->getContext());
  SmallVector<Type> inputs(forward.getArgumentTypes());
  inputs.push_back(site.hidden.getType());
  auto function = func::FuncOp::create(builder, forward.getLoc(), "guess_heads_" + std::to_string(number),
                                       builder.getFunctionType(inputs, results));
  function->setAttr("llm.draft", builder.getDictionaryAttr(
                                     {builder.getNamedAttr("name", builder.getStringAttr("heads")),
                                      builder.getNamedAttr("description", builder.getStringAttr(description)),
                                      builder.getNamedAttr("hidden", builder.getStringAttr(own ? "own" : "target")),
                                      builder.getNamedAttr("repeats", builder.getBoolAttr(repeats))}));
  function.addEntryBlock();
  SymbolTable(forward->getParentOp()).insert(function);
  return function;
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
