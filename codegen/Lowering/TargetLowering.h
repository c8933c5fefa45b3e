// What the programs of one target share: its profile, kernels, buffers and
// caches.
#ifndef SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H
#define SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H

#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/WeightTable.h"
#include "codegen/Target/TargetProfile.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Plan.h"
#include "runtime/Format/Control.h"

namespace mlir::llm {

/// Where the keys and values of one layer lie in a buffer.
struct CachePlan {
  plan::BufferOp buffer;
  uint64_t keys, values; ///< offsets
  uint64_t sideBytes;    ///< of each
  uint64_t layerBytes;   ///< from one layer to the next
  std::string format;    ///< as lib KvFormat of the kernels names it
  /// Where one binding does not span a side: its parts, bytes of a slot without
  /// scales, and where the scales of both sides are.
  CacheParts parts;
  uint64_t slotBytes = 0, scales = 0, scaleBytes = 0;
};

/// What is the same for all targets.
struct LoweringShape {
  int64_t capacity = 0; ///< slots of the key-value caches
  int64_t widest = 1;   ///< tokens of the widest step
};

class TargetLowering {
public:
  /// Makes the (empty) `plan.target` at the end of the module. `profileName` is
  /// what finds the profile again.
  TargetLowering(ModuleOp module, const TargetProfile &profile,
                 StringRef profileName, WeightTable &weights,
                 const LoweringShape &shape);

  const TargetProfile &profile() const { return targetProfile; }
  plan::TargetOp op() { return target; }
  WeightTable &weights() { return weightTable; }

  /// The kernel of that key, made when it is first asked for. Errors are on
  /// `user`.
  FailureOr<const KernelInterface *>
  kernel(StringRef family, DictionaryAttr spec, Operation *user);

  /// A buffer of its own, made when it is first asked for and as large as the
  /// largest request.
  plan::BufferOp buffer(plan::BufferKind kind, StringRef name, uint64_t bytes);

  /// The place of one layer's cache; a cache symbol becomes a buffer when it is
  /// first asked for.
  FailureOr<CachePlan> cache(KVOp handle);

  int64_t capacity() const { return shape.capacity; }
  /// Nodes of the largest tree that the history has room for.
  int64_t mostNodes() const {
    return std::min<int64_t>(shape.widest, sprig::format::kMostNodes);
  }
  /// Token ids of a whole context and of one step more, since a sampled token
  /// may land behind the last slot.
  uint64_t historyBytes() const {
    return 4 * uint64_t(shape.capacity + shape.widest);
  }

private:
  void insert(Operation *op);
  LogicalResult cutIntoParts(KVOp handle, KVType type, CachePlan &place) const;

  ModuleOp module;
  LoweringShape shape;
  const TargetProfile &targetProfile;
  WeightTable &weightTable;
  plan::TargetOp target;
  SymbolTable symbols;
  OpBuilder builder;
  llvm::DenseMap<std::pair<StringAttr, DictionaryAttr>,
                 std::unique_ptr<KernelInterface>>
      kernels;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H
