// What the programs of one target share: its profile, kernels, buffers and caches.
#ifndef SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H
#define SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H

#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/WeightTable.h"
#include "codegen/Target/TargetProfile.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Plan.h"

namespace mlir::llm {

class TargetLowering {
public:
  /// Makes the (empty) `plan.target` at the end of the module.
  TargetLowering(ModuleOp module, const TargetProfile &profile, WeightTable &weights);

  const TargetProfile &profile() const { return targetProfile; }
  plan::TargetOp op() { return target; }
  WeightTable &weights() { return weightTable; }

  /// The kernel of that key, made when it is first asked for. Errors are on `user`.
  FailureOr<const KernelInterface *> kernel(StringRef family, DictionaryAttr spec, Operation *user);

  /// A buffer of its own, made when it is first asked for and as large as the largest request.
  plan::BufferOp buffer(plan::BufferKind kind, StringRef name, uint64_t bytes);

private:
  const TargetProfile &targetProfile;
  WeightTable &weightTable;
  plan::TargetOp target;
  SymbolTable symbols;
  OpBuilder builder;
  llvm::DenseMap<std::pair<StringAttr, DictionaryAttr>, std::unique_ptr<KernelInterface>> kernels;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_TARGETLOWERING_H
