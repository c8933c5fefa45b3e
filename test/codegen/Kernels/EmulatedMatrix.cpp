#include "EmulatedMatrix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"

namespace mlir::llm::test {
namespace {

constexpr int64_t kSide = 16;

class Emulation {
public:
  Emulation(gpu::GPUFuncOp function, uint32_t invocations, uint32_t lanes)
      : function(function), builder(function), loc(function.getLoc()),
        invocations(invocations), lanes(lanes) {}

  void run() {
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::SubgroupMmaConstantMatrixOp, gpu::SubgroupMmaLoadMatrixOp,
              gpu::SubgroupMmaComputeOp, gpu::SubgroupMmaStoreMatrixOp,
              scf::ForOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      builder.setInsertionPoint(op);
      if (auto zero = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(op))
        begin(zero);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        follow(loop);
      else if (auto compute = dyn_cast<gpu::SubgroupMmaComputeOp>(op))
        multiply(compute);
      else if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(op))
        keep(store);
    }
    for (Operation *op : llvm::reverse(ops))
      if (!isa<scf::ForOp>(op))
        op->erase();
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b);
  }
  Value times(Value a, int64_t b) {
    return arith::MulIOp::create(builder, loc, a, index(b));
  }

  /// For each of this lane's numbers of a matrix: its place in `array`, its row
  /// and its column.
  void each(function_ref<void(Value at, Value i, Value j)> body) {
    Value id = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
    Value subgroup = arith::DivUIOp::create(builder, loc, id, index(lanes));
    Value lane = arith::RemUIOp::create(builder, loc, id, index(lanes));
    Value first = times(subgroup, kSide * kSide);
    auto loop = scf::ForOp::create(builder, loc, lane, index(kSide * kSide),
                                   index(lanes));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value place = loop.getInductionVar();
    body(add(first, place),
         arith::DivUIOp::create(builder, loc, place, index(kSide)),
         arith::RemUIOp::create(builder, loc, place, index(kSide)));
  }

  Value load(Value array, Value at) {
    return memref::LoadOp::create(builder, loc, array, at);
  }

  void begin(gpu::SubgroupMmaConstantMatrixOp op) {
    auto space = spirv::StorageClassAttr::get(builder.getContext(),
                                              spirv::StorageClass::Workgroup);
    auto type = MemRefType::get(
        {int64_t(invocations / lanes) * kSide * kSide}, builder.getF32Type(),
        MemRefLayoutAttrInterface{}, space);
    Value array;
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&function.getBody().front());
      array = memref::AllocOp::create(builder, loc, type);
    }
    arrays[op.getResult()] = array;
    each([&](Value at, Value, Value) {
      memref::StoreOp::create(builder, loc, op.getValue(), array, at);
    });
    stand(op.getResult(), op.getValue());
  }

  /// The array moves along with whatever takes the matrix's place as a value.
  void stand(Value matrix, Value number) {
    for (OpOperand &use : llvm::make_early_inc_range(matrix.getUses()))
      use.set(number);
    standIns.push_back({matrix, number});
  }

  void follow(scf::ForOp loop) {
    for (auto [i, init] : llvm::enumerate(loop.getInitArgs())) {
      Value argument = loop.getRegionIterArg(unsigned(i));
      if (!isa<gpu::MMAMatrixType>(argument.getType()))
        continue;
      // Accumulators start at zeros that are told apart by their order.
      Value array = arrays[standIns[next++].first];
      arrays[argument] = arrays[loop.getResult(unsigned(i))] = array;
      argument.setType(builder.getF32Type());
      loop.getResult(unsigned(i)).setType(builder.getF32Type());
    }
  }

  void multiply(gpu::SubgroupMmaComputeOp op) {
    auto a = op.getOpA().getDefiningOp<gpu::SubgroupMmaLoadMatrixOp>();
    auto b = op.getOpB().getDefiningOp<gpu::SubgroupMmaLoadMatrixOp>();
    Value array = arrays[op.getOpC()];
    auto wide = [&](Value half) {
      return arith::ExtFOp::create(builder, loc, builder.getF32Type(), half);
    };
    // Element (row, k) of A, and (k, column) of B, as they lie there.
    auto place = [&](gpu::SubgroupMmaLoadMatrixOp from, Value line,
                     Value within) {
      return add(from.getIndices()[0],
                 add(times(line, from.getLeadDimension().getSExtValue()),
                     within));
    };
    each([&](Value at, Value i, Value j) {
      auto loop = scf::ForOp::create(builder, loc, index(0), index(kSide),
                                     index(1), ValueRange{load(array, at)});
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(loop.getBody());
        Value k = loop.getInductionVar();
        Value left = wide(load(a.getSrcMemref(), place(a, i, k)));
        Value at2 = b.getTranspose() ? place(b, j, k) : place(b, k, j);
        Value product = arith::MulFOp::create(
            builder, loc, left, wide(load(b.getSrcMemref(), at2)));
        Value sum = arith::AddFOp::create(
            builder, loc, loop.getRegionIterArg(0), product);
        scf::YieldOp::create(builder, loc, sum);
      }
      memref::StoreOp::create(builder, loc, loop.getResult(0), array, at);
    });
    arrays[op.getResult()] = array;
    for (OpOperand &use : llvm::make_early_inc_range(op.getResult().getUses()))
      if (isa<scf::YieldOp>(use.getOwner()))
        use.set(cast<scf::ForOp>(use.getOwner()->getParentOp())
                    .getRegionIterArg(use.getOperandNumber()));
  }

  void keep(gpu::SubgroupMmaStoreMatrixOp op) {
    Value array = arrays[op.getSrc()];
    each([&](Value at, Value i, Value j) {
      Value line = times(i, op.getLeadDimension().getSExtValue());
      memref::StoreOp::create(builder, loc, load(array, at), op.getDstMemref(),
                              add(op.getIndices()[0], add(line, j)));
    });
  }

  gpu::GPUFuncOp function;
  OpBuilder builder;
  Location loc;
  uint32_t invocations, lanes;
  llvm::DenseMap<Value, Value> arrays; ///< of a matrix, by its value
  SmallVector<std::pair<Value, Value>> standIns;
  size_t next = 0;
};

} // namespace

void emulateMatrices(ModuleOp kernel, uint32_t invocations,
                     uint32_t subgroupSize) {
  kernel.walk([&](gpu::GPUFuncOp function) {
    Emulation(function, invocations, subgroupSize).run();
  });
}

} // namespace mlir::llm::test
