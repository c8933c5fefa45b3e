// llm-make-evict: see Passes.td.
#include "dialects/LLM/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "transforms/Passes.h"
#include <map>

namespace mlir::llm {
#define GEN_PASS_DEF_MAKEEVICTPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {

/// What a key went through last, before it was appended.
struct KeyWay {
  RopeOp rope;
  HadamardOp hadamard;
};

KeyWay wayOf(KVAppendOp append) {
  KeyWay way;
  Value key = append.getKey();
  if ((way.hadamard = key.getDefiningOp<HadamardOp>()))
    key = way.hadamard.getInput();
  way.rope = key.getDefiningOp<RopeOp>();
  return way;
}

struct MakeEvictPass final : llm::impl::MakeEvictPassBase<MakeEvictPass> {
  using MakeEvictPassBase::MakeEvictPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.lookupSymbol("evict"))
      return;
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      module.emitError("expects a function @forward, but got none");
      return signalPassFailure();
    }
    // Drafts may have caches of their own.
    std::map<std::pair<StringRef, int64_t>, KVAppendOp> appends;
    for (auto function : module.getOps<func::FuncOp>()) {
      // Trees fill the caches of @forward.
      if (function.isExternal() || function.getName() == "verify")
        continue;
      if (failed(checkPositions(function)))
        return signalPassFailure();
      function.walk([&](KVAppendOp append) {
        auto handle = append.getCache().getDefiningOp<KVOp>();
        if (handle)
          appends.try_emplace({handle.getCache(), int64_t(handle.getIndex())}, append);
      });
    }
    for (auto &[cache, append] : appends)
      if (failed(check(append)))
        return signalPassFailure();
    makeFunction(forward, appends);
  }

private:
  int64_t slotsOf(KVAppendOp append) const {
    return int64_t(context) != 0 ? int64_t(context) : cast<KVType>(append.getCache().getType()).getCapacity();
  }

  /// A rotation can be undone, and a mask sees slots; anything else that positions went into stays in keys and values.
  static LogicalResult checkPositions(func::FuncOp function) {
    if (function.getNumArguments() < 2)
      return success();
    for (Operation *user : function.getArgument(1).getUsers())
      if (!isa<RopeOp, KVAppendOp, AttentionOp>(user))
        return user->emitOpError("expects positions that reach keys by a rotation alone, since those of what stays in a "
                                 "full context change, but it reads them too");
    return success();
  }

  LogicalResult check(KVAppendOp append) const {
    if (append.getSlots() || append.getBase())
      return append.emitOpError("expects slots that are the positions, but got slots or a base of their own");
    KeyWay way = wayOf(append);
    if (way.hadamard && way.hadamard.getSigns())
      return way.hadamard.emitOpError("expects a transform without signs behind a rotation, but got one with signs");
    if (!way.rope) {
      // Turned inside, beside numbers that are not: rotations of no whole key.
      WalkResult found = append->getParentOp()->walk([&](RopeOp rope) {
        const bool known = llvm::all_of(rope.getResult().getUsers(), [](Operation *user) {
          return isa<KVAppendOp, AttentionOp, HadamardOp>(user);
        });
        if (known)
          return WalkResult::advance();
        rope.emitOpError("expects a rotation of whole keys, so that it can be turned back, but its result goes through "
                         "other operations to the cache");
        return WalkResult::interrupt();
      });
      return failure(found.wasInterrupted());
    }
    if (Value frequencies = way.rope.getFrequencies(); frequencies && !frequencies.getDefiningOp<WeightOp>())
      return way.rope.emitOpError("expects frequencies that are a weight, but got others");
    if (way.rope.getLongFrom() && int64_t(*way.rope.getLongFrom()) < slotsOf(append))
      return way.rope.emitOpError("expects one set of frequencies within the context, so that keys can be turned back, "
                                  "but they change at position ")
             << int64_t(*way.rope.getLongFrom()) << " of " << slotsOf(append) << "; compile with --context="
             << int64_t(*way.rope.getLongFrom());
    return success();
  }

  static void makeFunction(func::FuncOp forward,
                           std::map<std::pair<StringRef, int64_t>, KVAppendOp> &appends) {
    Location loc = forward.getLoc();
    OpBuilder builder(forward);
    builder.setInsertionPointAfter(forward);
    auto one = RankedTensorType::get({1}, builder.getI32Type());
    auto evict = func::FuncOp::create(builder, loc, "evict", builder.getFunctionType({one, one}, {}));
    Block *entry = evict.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    DenseMap<Operation *, Value> weights;
    for (auto &[cache, append] : appends) {
      KeyWay way = wayOf(append);
      Value handle = builder.clone(*append.getCache().getDefiningOp())->getResult(0);
      Value frequencies = way.rope ? way.rope.getFrequencies() : Value();
      if (frequencies) {
        Value &own = weights[frequencies.getDefiningOp()];
        if (!own)
          own = builder.clone(*frequencies.getDefiningOp())->getResult(0);
        frequencies = own;
      }
      auto op = KVEvictOp::create(builder, append.getLoc(), handle, /*keep=*/Value(), entry->getArgument(0),
                                  entry->getArgument(1), frequencies, FloatAttr(), IntegerAttr(), FloatAttr(),
                                  UnitAttr(), IntegerAttr());
      if (!way.rope)
        continue;
      op.setBaseAttr(way.rope.getBaseAttr());
      op.setDimsAttr(way.rope.getDimsAttr());
      op.setScaleAttr(way.rope.getScaleAttr());
      op.setInterleavedAttr(way.rope.getInterleavedAttr());
      if (way.hadamard)
        op.setHadamardAttr(way.hadamard.getBlockAttr());
    }
    func::ReturnOp::create(builder, loc);
  }
};

} // namespace
