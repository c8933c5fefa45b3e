// The dialect object, its type, and what views are views of.
#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

int64_t plan::getViewBytes(Value view) {
  // Programs have no block arguments, so every view has one of the four
  // defining operations.
  return llvm::TypeSwitch<Operation *, int64_t>(view.getDefiningOp())
      .Case<ViewOp, WeightOp, ScratchOp, SliceOp>(
          [](auto op) { return op.getBytes(); })
      .Default([](Operation *) { return 0; });
}

Place plan::getPlace(Value view) {
  Place place;
  place.bytes = getViewBytes(view);
  while (auto slice = view.getDefiningOp<SliceOp>()) {
    place.offset += slice.getOffset();
    view = slice.getSource();
  }
  llvm::TypeSwitch<Operation *>(view.getDefiningOp())
      .Case([&](ViewOp op) {
        place.symbol = op.getBufferAttr().getAttr();
        place.offset += op.getOffset();
      })
      .Case([&](WeightOp op) {
        place.symbol = op.getTensorAttr().getAttr();
        place.weight = true;
        place.offset += op.getOffset();
      })
      .Case([&](ScratchOp) { place.scratch = view; });
  return place;
}

Operation *plan::lookupTensor(Operation *from, FlatSymbolRefAttr name) {
  auto module = from->getParentOfType<ModuleOp>();
  return module ? SymbolTable::lookupSymbolIn(module, name) : nullptr;
}
