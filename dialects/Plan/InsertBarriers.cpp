// plan-insert-barriers: see Passes.td.
#include "dialects/Plan/Hazards.h"
#include "dialects/Plan/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::plan {
#define GEN_PASS_DEF_INSERTBARRIERSPASS
#include "dialects/Plan/Passes.h.inc"
} // namespace mlir::plan

using namespace mlir;
using namespace mlir::plan;

namespace {
struct InsertBarriers final
    : plan::impl::InsertBarriersPassBase<InsertBarriers> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    for (BarrierOp barrier :
         llvm::make_early_inc_range(program.getOps<BarrierOp>()))
      barrier.erase();
    HazardTracker pending;
    int64_t barriers = 0, dispatches = 0;
    for (DispatchOp dispatch :
         llvm::make_early_inc_range(program.getOps<DispatchOp>())) {
      ++dispatches;
      bool indirect = false;
      if (pending.needsBarrier(dispatch, indirect)) {
        OpBuilder builder(dispatch);
        BarrierOp::create(builder, dispatch.getLoc(), indirect);
        pending.clear();
        ++barriers;
      }
      pending.add(dispatch);
    }
    remark::passed(
        program.getLoc(),
        remark::RemarkOpts::name("barriers").category(kRemarkCategory))
        << llvm::formatv("@{0}: {1} barriers for {2} dispatches",
                         program.getSymName(), barriers, dispatches)
               .str();
  }
};
} // namespace
