// Loops and branches.
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/ToSpirv.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::llm {

Values KernelBuilder::loop(Value lower, Value upper, Value step,
                           ValueRange initial, LoopBody body, Rounds rounds) {
  auto loop =
      scf::ForOp::create(builder, location, lower, upper, step, initial);
  if (rounds != Rounds::Any)
    loop->setAttr(kLoopControl,
                  spirv::LoopControlAttr::get(
                      builder.getContext(), rounds == Rounds::KeepLoop
                                                ? spirv::LoopControl::DontUnroll
                                                : spirv::LoopControl::Unroll));
  OpBuilder::InsertionGuard guard(builder);
  // The builder adds a terminator of its own when nothing is carried.
  builder.setInsertionPointToStart(loop.getBody());
  Values carried = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!initial.empty())
    scf::YieldOp::create(builder, location, carried);
  Values results(loop.getResults());
  std::optional<int64_t> from = getConstantIntValue(lower),
                         to = getConstantIntValue(upper);
  if (from && to && *from < *to)
    return results;
  // The conversion to SPIR-V leaves the results of a loop of no rounds
  // undefined.
  builder.setInsertionPointAfter(loop);
  Value any = less(lower, upper);
  for (auto [result, first] : llvm::zip_equal(results, initial))
    result = select(any, result, first);
  return results;
}
Values KernelBuilder::loop(int64_t lower, int64_t upper, int64_t step,
                           ValueRange initial, LoopBody body) {
  return loop(index(lower), index(upper), index(step), initial, body);
}

void KernelBuilder::when(Value condition, function_ref<void()> body) {
  auto branch =
      scf::IfOp::create(builder, location, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}
Values KernelBuilder::choose(Value condition, function_ref<Values()> then,
                             function_ref<Values()> otherwise) {
  auto branch = scf::IfOp::create(
      builder, location, condition,
      [&](OpBuilder &nested, Location at) {
        OpBuilder::InsertionGuard guard(builder);
        builder.restoreInsertionPoint(nested.saveInsertionPoint());
        Values results = then();
        scf::YieldOp::create(builder, at, results);
      },
      [&](OpBuilder &nested, Location at) {
        OpBuilder::InsertionGuard guard(builder);
        builder.restoreInsertionPoint(nested.saveInsertionPoint());
        Values results = otherwise();
        scf::YieldOp::create(builder, at, results);
      });
  return Values(branch.getResults());
}

} // namespace mlir::llm
