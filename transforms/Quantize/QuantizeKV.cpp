#include "dialects/LLM/IntegerAttention.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/BalanceKeys.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_QUANTIZEKVPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-quantize-kv";
/// Numbers of a head that are transformed together: shorter blocks spread nothing, kernels reach no farther.
static constexpr int64_t kLeastBlock = 8, kMostBlock = 256;

namespace {

struct QuantizeKVPass final : llm::impl::QuantizeKVPassBase<QuantizeKVPass> {
  using QuantizeKVPassBase::QuantizeKVPassBase;

  void runOnOperation() override {
    if (bits != 8 && bits != 4) {
      getOperation().emitError() << kPass << " expects 8 or 4 bits, but got " << unsigned(bits);
      return signalPassFailure();
    }
    if (attention != 16 && (attention != 8 || bits != 8)) {
      getOperation().emitError() << kPass << " expects attention in 16 bits, or in 8 over caches of 8, but got "
                                 << unsigned(attention) << " over caches of " << unsigned(bits);
      return signalPassFailure();
    }
    auto caches = llvm::to_vector(getOperation().getOps<KVCacheOp>());
    if (failed(checkFloats(caches)) || (balance && failed(balanceKeys(getOperation()))))
      return signalPassFailure();
    for (KVCacheOp cache : caches) {
      KVType type = cache.getCacheType();
      const int64_t widest = std::max(type.getKeyWidth(), type.getValueWidth());
      if (bits == 4 && (type.getKeyWidth() % group || type.getValueWidth() % group)) {
        cache.emitOpError("expects heads of a multiple of ") << int64_t(group) << " numbers for groups, but got " << widest;
        return signalPassFailure();
      }
      const Type element = numbers(), values = type.getValueType() ? element : Type();
      auto changed = KVType::get(&getContext(), type.getHeads(), type.getKeyWidth(), type.getValueWidth(), element, values,
                                 type.getCapacity(), type.getWindow(), type.getSinks());
      if (attention == 8 && (element != integerHead(&getContext()) || values != element)) {
        cache.emitOpError("expects keys and values of ")
            << integerHead(&getContext()) << " for attention in 8 bits, but got " << changed;
        return signalPassFailure();
      }
      cache.setType(changed);
      report(cache, kPass,
             "keys and values in " + Twine(unsigned(bits)) + " bits" + (attention == 8 ? ", attention of integers" : ""));
      getOperation().walk([&](KVOp handle) {
        if (handle.getCache() != cache.getSymName())
          return;
        handle.getHandle().setType(changed);
        if (rotate && !type.isValuePrefix())
          transform(handle, type.getKeyWidth());
        if (attention == 8)
          for (Operation *user : handle.getHandle().getUsers()) {
            if (auto op = dyn_cast<AttentionOp>(user))
              op.setIntegers(true);
            else if (auto tree = dyn_cast<TreeAttentionOp>(user))
              tree.setIntegers(true);
          }
      });
    }
  }

private:
  /// A second transform would undo the first, and the numbers are gone.
  LogicalResult checkFloats(ArrayRef<KVCacheOp> caches) {
    for (KVCacheOp cache : caches) {
      const KVType type = cache.getCacheType();
      if (isa<QuantizedType>(type.getKeyType()) || isa_and_nonnull<QuantizedType>(type.getValueType()))
        return cache.emitOpError("expects keys and values of floats to quantise, but @")
               << cache.getSymName() << " is " << type << " already; start from IR that was made without --kv=8|4 and kv:";
    }
    return success();
  }

  /// What the append stores and attention multiplies goes through one transform.
  void transform(KVOp handle, int64_t width) {
    const int64_t block = std::min<int64_t>(width & -width, kMostBlock);
    if (block < kLeastBlock)
      return;
    for (Operation *user : handle.getHandle().getUsers()) {
      if (!isa<KVAppendOp, AttentionOp, TreeAttentionOp>(user))
        continue;
      auto append = dyn_cast<KVAppendOp>(user);
      OpOperand &operand = append ? append.getKeyMutable() : user->getOpOperand(0);
      OpBuilder builder(user);
      builder.setInsertionPointAfterValue(operand.get());
      operand.set(HadamardOp::create(builder, user->getLoc(), operand.get().getType(), operand.get(),
                                     builder.getI64IntegerAttr(block), DenseI64ArrayAttr(), UnitAttr()));
    }
  }

  /// A scale a token and head for 8 bits; a scale and a minimum a group for 4.
  Type numbers() {
    if (bits == 8)
      return integerHead(&getContext());
    return QuantizedType::get(
        &getContext(), QuantCode::unsignedInt(4),
        {QuantLevel::withOffset(group, ScaleType::f16(), OffsetKind::AddMin, ScaleType::f16())});
  }
};

} // namespace
