// plan-place-weights: see Passes.td.
#include "dialects/Plan/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::plan {
#define GEN_PASS_DEF_PLACEWEIGHTSPASS
#include "dialects/Plan/Passes.h.inc"
} // namespace mlir::plan

using namespace mlir;
using namespace mlir::plan;

namespace {
struct PlaceWeights final : plan::impl::PlaceWeightsPassBase<PlaceWeights> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable tensors(module);
    // Order of first use, so that a run reads the file from front to back.
    llvm::SetVector<Operation *> used;
    for (TargetOp target : module.getOps<TargetOp>())
      target.walk([&](WeightOp weight) {
        used.insert(tensors.lookup(weight.getTensor()));
      });
    int64_t end = 0;
    for (Operation *op : used) {
      auto tensor = cast<TensorOp>(op);
      tensor.setOffset(end);
      end = plan::alignTo(end + tensor.getBytes(), kAlignment);
    }
    for (TensorOp tensor :
         llvm::make_early_inc_range(module.getOps<TensorOp>()))
      if (!used.contains(tensor))
        tensor.erase();
    for (TargetOp target : module.getOps<TargetOp>())
      placeBuffer(target, tensors);
    remark::passed(
        module.getLoc(),
        remark::RemarkOpts::name("weights").category(kRemarkCategory))
        << llvm::formatv("{0} tensors in {1} bytes", used.size(), end).str();
  }

  /// The span of the section that `target` uses becomes its buffer of weights.
  void placeBuffer(TargetOp target, SymbolTable &tensors) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
    target.walk([&](WeightOp weight) {
      auto tensor = cast<TensorOp>(tensors.lookup(weight.getTensor()));
      begin = std::min<int64_t>(begin, *tensor.getOffset());
      end = std::max<int64_t>(end, *tensor.getOffset() + tensor.getBytes());
    });
    if (BufferOp old = target.findBuffer(BufferKind::weights))
      old.erase();
    if (end == 0)
      return;
    begin = begin / kPageBytes * kPageBytes;
    end = plan::alignTo(end, kPageBytes);
    auto builder = OpBuilder::atBlockBegin(&target.getBody().front());
    BufferOp::create(builder, target.getLoc(), "weights", BufferKind::weights,
                     end - begin, builder.getI64IntegerAttr(begin));
  }
};
} // namespace
