// plan-assign-memory: see Passes.td. Places are chosen greedily, largest value
// first, best fit among the holes that values alive at the same time leave (the
// "greedy by size" of Pisarchyk and Lee, arXiv:2001.03288).
#include "dialects/Plan/Hazards.h"
#include "dialects/Plan/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::plan {
#define GEN_PASS_DEF_ASSIGNMEMORYPASS
#include "dialects/Plan/Passes.h.inc"
} // namespace mlir::plan

using namespace mlir;
using namespace mlir::plan;

namespace {
/// A scratch value's life, in steps between barriers, and its place.
struct Life {
  ScratchOp scratch;
  int64_t bytes; // with the padding that keeps the next one aligned
  int64_t first = -1, last = -1;
  int64_t offset = 0;

  bool meets(const Life &other) const {
    return first <= other.last && other.first <= last;
  }
};

struct AssignMemory final : plan::impl::AssignMemoryPassBase<AssignMemory> {
  void runOnOperation() override {
    TargetOp target = getOperation();
    if (BufferOp buffer = target.findBuffer(BufferKind::scratch)) {
      // Running twice would mix two plans in one buffer.
      buffer.emitOpError("expects no scratch buffer before memory is assigned; "
                         "run plan-assign-memory once");
      return signalPassFailure();
    }
    SmallVector<std::pair<ProgramOp, SmallVector<Life>>> programs;
    int64_t peak = 0;
    for (ProgramOp program : target.getOps<ProgramOp>()) {
      FailureOr<SmallVector<Life>> lives = measure(program);
      if (failed(lives))
        return signalPassFailure();
      peak = std::max(peak, place(program, *lives));
      programs.emplace_back(program, std::move(*lives));
    }
    if (peak == 0)
      return;
    auto builder = OpBuilder::atBlockBegin(&target.getBody().front());
    std::string name = "scratch";
    while (SymbolTable::lookupSymbolIn(target, name))
      name += "_";
    BufferOp::create(builder, target.getLoc(), name, BufferKind::scratch, peak,
                     /*offset=*/IntegerAttr());
    for (auto &[program, lives] : programs)
      for (Life &life : lives) {
        builder.setInsertionPoint(life.scratch);
        Value view = ViewOp::create(builder, life.scratch.getLoc(), name,
                                    life.offset, life.scratch.getBytes());
        life.scratch.replaceAllUsesWith(view);
        life.scratch.erase();
      }
  }

  /// Lives of all scratch values of `program`; values that nothing uses are
  /// erased.
  static FailureOr<SmallVector<Life>> measure(ProgramOp program) {
    SmallVector<Life> lives;
    llvm::DenseMap<Value, unsigned> index;
    HazardTracker pending;
    int64_t step = 0;
    for (DispatchOp dispatch : program.getOps<DispatchOp>()) {
      bool indirect = false;
      if (pending.needsBarrier(dispatch, indirect)) {
        pending.clear();
        ++step;
      }
      pending.add(dispatch);
      auto touch = [&](Value view, bool reads) -> LogicalResult {
        Value root = getPlace(view).scratch;
        if (!root)
          return success();
        auto [it, isNew] = index.try_emplace(root, lives.size());
        if (isNew) {
          auto scratch = root.getDefiningOp<ScratchOp>();
          if (reads)
            return dispatch.emitOpError("expects scratch value '")
                   << scratch.getLabel() << "' to be written before it is read";
          lives.push_back({scratch, alignTo(scratch.getBytes(), kAlignment),
                           step, step, 0});
        }
        lives[it->second].last = step;
        return success();
      };
      for (auto [i, binding] : llvm::enumerate(dispatch.getBindings()))
        if (failed(touch(binding, dispatch.reads(i))))
          return failure();
      if (dispatch.getIndirect() &&
          failed(touch(dispatch.getIndirect(), /*reads=*/true)))
        return failure();
    }
    for (ScratchOp scratch :
         llvm::make_early_inc_range(program.getOps<ScratchOp>()))
      if (scratch->use_empty())
        scratch.erase();
    return lives;
  }

  /// Chooses offsets; returns the bytes needed.
  static int64_t place(ProgramOp program, SmallVector<Life> &lives) {
    SmallVector<Life *> bySize(llvm::make_pointer_range(lives));
    llvm::sort(bySize, [](const Life *a, const Life *b) {
      return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
    });
    SmallVector<const Life *> placed; // by offset
    int64_t peak = 0, floor = 0;
    for (Life *life : bySize) {
      int64_t best = -1, bestHole = std::numeric_limits<int64_t>::max(),
              end = 0;
      for (const Life *other : placed) {
        if (!life->meets(*other))
          continue;
        int64_t hole = other->offset - end;
        if (hole >= life->bytes && hole < bestHole) {
          best = end;
          bestHole = hole;
        }
        end = std::max(end, other->offset + other->bytes);
      }
      life->offset = best < 0 ? end : best;
      peak = std::max(peak, life->offset + life->bytes);
      placed.insert(llvm::upper_bound(placed, life,
                                      [](const Life *a, const Life *b) {
                                        return a->offset < b->offset;
                                      }),
                    life);
    }
    // What any plan needs: the most bytes alive in one step.
    for (const Life &at : lives) {
      int64_t alive = 0;
      for (const Life &life : lives)
        alive +=
            life.first <= at.first && at.first <= life.last ? life.bytes : 0;
      floor = std::max(floor, alive);
    }
    remark::passed(program.getLoc(),
                   remark::RemarkOpts::name("memory").category(kRemarkCategory))
        << llvm::formatv("@{0}: scratch peak {1} bytes for {2} values, at "
                         "least {3} are alive at one time",
                         program.getSymName(), peak, lives.size(), floor)
               .str();
    return peak;
  }
};
} // namespace
